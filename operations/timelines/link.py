"""Where a reservation meets its run: both verified against each other, whichever arrives first (O29).

A reservation without its run waits as a pending row. One that its run contradicts is recorded as mismatched with what
the two say differently. Only one that agrees joins the summary; nothing is ever made up from one side alone.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from operations.timelines.fact import Fact, Part
from operations.timelines.models import LinkState, ReservationState
from outbox.contracts.contract import ContentReference, timestamp
from outbox.contracts.envelope import Envelope, decode_payload
from upstream.admission.contracts import RUN_CREATED, RUN_CREATED_VERSION, RunCreated, WalletReserved, disagreements

SUMMARISED = (
    "run_id",
    "operation_id",
    "run_event_id",
    "tenant_kind",
    "tenant_id",
    "workspace_id",
    "project_id",
    "correlation_id",
    "billing_account_id",
    "expected_reservation_id",
    "run_admission_manifest_ref",
    "run_admission_manifest_schema_version",
    "run_admission_manifest_digest",
    "run_created_at",
    "reservation_state",
)
"""The columns of a summary that `summarised_run` reads."""
ALREADY_LINKED = "reservation_event_id"
"""The disagreement of a reservation that agrees with a run which another reservation event has joined before."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one reservation event. `run_event_id` and `disagreements` are None while it is pending."""

    wallet: Fact
    state: LinkState
    run_event_id: str | None
    disagreements: str | None
    stored: bool
    """True if it stood in the pending rows before."""


@dataclass(slots=True)
class Meeting:
    """One run and the reservations that name it. `state` is the summary's, before and after `decide`."""

    run_envelope: Envelope
    run: RunCreated
    state: ReservationState
    joined: Fact | None = None

    def decide(self, wallet: Fact, *, stored: bool) -> Decision:
        """Verify one reservation against the run, and join it if it is the first that agrees."""
        names = disagreements(
            run_envelope=self.run_envelope, run=self.run, wallet_envelope=wallet.envelope, wallet=wallet.payload
        )
        if not names and self.state is ReservationState.LINKED:
            names = (ALREADY_LINKED,)
        if not names:
            self.state, self.joined = ReservationState.LINKED, wallet
        elif self.state is ReservationState.SOURCE_DELAYED:
            self.state = ReservationState.MISMATCHED
        state = LinkState.MISMATCHED if names else LinkState.LINKED
        return Decision(wallet, state, self.run_envelope.event_id, ",".join(names) or None, stored)


@dataclass(slots=True)
class Links:
    """What a batch decides about reservations: new summaries, joined ones, and every decision."""

    opened: list[Meeting] = field(default_factory=list)
    joined: list[Meeting] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    @property
    def unlinked(self) -> list[Decision]:
        """Reservations of this batch that did not join a summary."""
        return [one for one in self.decisions if not one.stored and one.state is not LinkState.LINKED]

    @property
    def decided(self) -> list[Decision]:
        """Reservations that waited before and wait no longer."""
        return [one for one in self.decisions if one.stored]


def link(facts: Sequence[Fact], *, known: Mapping[str, Meeting], pending: Mapping[str, Sequence[Fact]]) -> Links:
    """Bring the runs and reservations of a batch together with each other and with what is stored.

    `known` holds the summaries that exist for runs named here, `pending` the waiting reservations, both by run id.
    """
    links = Links()
    meetings = dict(known)
    wallets: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.part is Part.RUN:
            meeting = Meeting(fact.envelope, fact.payload, ReservationState.SOURCE_DELAYED)
            meetings[fact.payload.run_id] = meeting
            links.opened.append(meeting)
            links.decisions.extend(
                meeting.decide(wallet, stored=True) for wallet in pending.get(fact.payload.run_id, ())
            )
        elif fact.part is Part.RESERVATION:
            wallets[fact.payload.run_id].append(fact)
    for run_id, arrived in wallets.items():
        found = meetings.get(run_id)
        if found is None:
            links.decisions.extend(Decision(wallet, LinkState.PENDING, None, None, False) for wallet in arrived)
            continue
        before = found.state
        links.decisions.extend(found.decide(wallet, stored=False) for wallet in arrived)
        if run_id in known and found.state is not before:
            links.joined.append(found)
    return links


def summarised_run(row: tuple[Any, ...]) -> Meeting:
    """The run of a stored summary, as its event said it, and the state of its reservation."""
    said = dict(zip(SUMMARISED, row, strict=True))
    envelope = Envelope(
        event_id=said["run_event_id"],
        event_type=RUN_CREATED,
        event_schema_version=RUN_CREATED_VERSION,
        aggregate_id=said["run_id"],
        aggregate_revision=1,
        tenant_kind=said["tenant_kind"],
        tenant_id=said["tenant_id"],
        workspace_id=said["workspace_id"],
        project_id=said["project_id"],
        correlation_id=said["correlation_id"],
        operation_id=said["operation_id"],
        occurred_at=timestamp(said["run_created_at"]),
        payload={},
    )
    run = RunCreated(
        run_id=said["run_id"],
        billing_account_id=said["billing_account_id"],
        billing_reservation_id=said["expected_reservation_id"],
        run_admission_manifest=ContentReference(
            ref=said["run_admission_manifest_ref"],
            schema_version=said["run_admission_manifest_schema_version"],
            digest=said["run_admission_manifest_digest"],
        ),
    )
    return Meeting(envelope, run, ReservationState(said["reservation_state"]))


def stored_wallet(*, data: bytes, sha256: str) -> Fact:
    """The reservation event of a pending row."""
    envelope = Envelope.model_validate_json(data)
    payload = decode_payload(envelope, WalletReserved)
    return Fact(Part.RESERVATION, "core", envelope, payload, data, sha256)
