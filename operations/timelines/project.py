"""Projects a batch of proven events: summaries, timelines, unlinked reservations, identifiers (O26, O29).

Runs inside the caller's transaction, under the caller's locks: the aggregate of every event, and for a reservation also
that of its run.
"""

from collections import defaultdict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from operations.timelines import statements
from operations.timelines.fact import Fact, Part
from operations.timelines.identify import of_entry, of_unlinked
from operations.timelines.link import Decision, Meeting, link, stored_wallet, summarised_run
from operations.timelines.models import LinkState, ReservationState
from outbox.contracts.canonical import DIGEST_ALGORITHM
from outbox.raw import Cursor
from outbox.text_array import texts, words


class OperationTaken(RuntimeError):
    """Another run already has a summary under this operation id or run id. Permanent: the producer must explain it."""


def project(cursor: Cursor, facts: Sequence[Fact], *, projection_version: str, untouched: AbstractSet[str]) -> None:
    """Project `facts`, whose revisions are next, in order.

    `untouched` are the aggregate ids of which nothing at all was known before: what can not be stored is not looked up.
    Raises `OperationTaken`, or a database error; the caller then rolls back.
    """
    _Projection(cursor, projection_version).run(facts, untouched)


class _Projection:
    def __init__(self, cursor: Cursor, version: str) -> None:
        self.cursor = cursor
        self.version = version

    def run(self, facts: Sequence[Fact], untouched: AbstractSet[str]) -> None:
        runs = {fact.payload.run_id for fact in facts if fact.part is Part.RUN}
        named = {fact.payload.run_id for fact in facts if fact.part is Part.RESERVATION}
        links = link(facts, known=self._known(named - runs - untouched), pending=self._pending(runs - untouched))
        self._store_summaries(links.opened)
        self._join(links.joined)
        self._store_unlinked(links.unlinked)
        self._decide(links.decided)
        entries = [fact for fact in facts if fact.part is not Part.RESERVATION]
        entries += [one.wallet for one in links.decisions if one.state is LinkState.LINKED and not one.stored]
        self._store_identifiers(entries, links.unlinked)
        self._store_entries(entries + [one.wallet for one in links.decided if one.state is LinkState.LINKED])

    def _execute(self, statement: str, **parameters: Any) -> int:
        self.cursor.execute(statement, {"version": self.version, **parameters})
        return int(self.cursor.rowcount)

    def _known(self, run_ids: AbstractSet[str]) -> dict[str, Meeting]:
        if not run_ids:
            return {}
        self._execute(statements.SUMMARIES_OF_RUNS, run_ids=texts(sorted(run_ids)))
        return {row[0]: summarised_run(row) for row in self.cursor.fetchall()}

    def _pending(self, run_ids: AbstractSet[str]) -> dict[str, list[Fact]]:
        found: dict[str, list[Fact]] = defaultdict(list)
        if run_ids:
            self._execute(statements.PENDING_OF_RUNS, run_ids=texts(sorted(run_ids)))
            for run_id, envelope, sha256 in self.cursor.fetchall():
                found[run_id].append(stored_wallet(data=envelope.encode(), sha256=sha256))
        return found

    def _store_summaries(self, opened: Sequence[Meeting]) -> None:
        if not opened:
            return
        envelopes = [meeting.run_envelope for meeting in opened]
        runs = [meeting.run for meeting in opened]
        manifests = [run.run_admission_manifest for run in runs]
        stored = self._execute(
            statements.STORE_SUMMARIES,
            algorithm=DIGEST_ALGORITHM,
            operation_ids=texts([one.operation_id for one in envelopes]),
            run_ids=texts([one.run_id for one in runs]),
            run_event_ids=words([one.event_id for one in envelopes]),
            tenant_kinds=words([one.tenant_kind for one in envelopes]),
            tenant_ids=texts([one.tenant_id for one in envelopes]),
            workspace_ids=texts([one.workspace_id for one in envelopes]),
            project_ids=texts([one.project_id for one in envelopes]),
            correlation_ids=texts([one.correlation_id for one in envelopes]),
            account_ids=texts([one.billing_account_id for one in runs]),
            reservation_ids=texts([one.billing_reservation_id for one in runs]),
            manifest_refs=texts([one.ref for one in manifests]),
            manifest_schema_versions=words([one.schema_version for one in manifests]),
            manifest_digests=words([one.digest for one in manifests]),
            runs_created_at=words([one.occurred_at for one in envelopes]),
            **_reservation_columns(opened),
        )
        if stored != len(opened):
            raise OperationTaken(OperationTaken.__doc__)

    def _join(self, joined: Sequence[Meeting]) -> None:
        if joined:
            self._execute(
                statements.JOIN_RESERVATIONS,
                run_ids=texts([meeting.run.run_id for meeting in joined]),
                **_reservation_columns(joined),
            )

    def _store_unlinked(self, decisions: Sequence[Decision]) -> None:
        if not decisions:
            return
        wallets = [one.wallet for one in decisions]
        self._execute(
            statements.STORE_UNLINKED,
            **_decision_columns(decisions),
            run_ids=texts([one.payload.run_id for one in wallets]),
            reservation_ids=texts([one.payload.billing_reservation_id for one in wallets]),
            operation_ids=texts([one.envelope.operation_id for one in wallets]),
            envelopes=texts([one.data.decode() for one in wallets]),
            digests=words([one.sha256 for one in wallets]),
            occurred_at=words([one.envelope.occurred_at for one in wallets]),
        )

    def _decide(self, decisions: Sequence[Decision]) -> None:
        if decisions:
            self._execute(statements.DECIDE_UNLINKED, **_decision_columns(decisions))

    def _store_entries(self, facts: Sequence[Fact]) -> None:
        if not facts:
            return
        envelopes = [fact.envelope for fact in facts]
        self._execute(
            statements.STORE_ENTRIES,
            operation_ids=texts([one.operation_id for one in envelopes]),
            occurred_at=words([one.occurred_at for one in envelopes]),
            event_ids=words([one.event_id for one in envelopes]),
            event_types=words([one.event_type for one in envelopes]),
            schema_versions=words([one.event_schema_version for one in envelopes]),
            producers=words([fact.producer for fact in facts]),
            aggregate_ids=texts([one.aggregate_id for one in envelopes]),
            revisions=words([str(one.aggregate_revision) for one in envelopes]),
            correlation_ids=texts([one.correlation_id for one in envelopes]),
            causation_ids=texts([one.causation_id for one in envelopes]),
        )

    def _store_identifiers(self, entries: Sequence[Fact], unlinked: Sequence[Decision]) -> None:
        rows = [row for fact in entries for row in of_entry(fact)]
        rows += [row for decision in unlinked for row in of_unlinked(decision.wallet)]
        if rows:
            values, kinds, event_ids, operation_ids = zip(*rows, strict=True)
            self._execute(
                statements.STORE_IDENTIFIERS,
                values=texts(values),
                kinds=words(kinds),
                event_ids=words(event_ids),
                operation_ids=texts(operation_ids),
            )


def _reservation_columns(meetings: Sequence[Meeting]) -> dict[str, str]:
    joined = [meeting.joined if meeting.state is ReservationState.LINKED else None for meeting in meetings]
    return {
        "states": words([meeting.state for meeting in meetings]),
        "reservation_event_ids": words([one.envelope.event_id if one else "NULL" for one in joined]),
        "currencies": words([one.payload.currency if one else "NULL" for one in joined]),
        "holds": words([one.payload.hold_amount_picos if one else "NULL" for one in joined]),
        "reserved_at": words([one.envelope.occurred_at if one else "NULL" for one in joined]),
    }


def _decision_columns(decisions: Sequence[Decision]) -> dict[str, str]:
    return {
        "event_ids": words([one.wallet.envelope.event_id for one in decisions]),
        "states": words([one.state for one in decisions]),
        "run_event_ids": words([one.run_event_id or "NULL" for one in decisions]),
        "disagreements": texts([one.disagreements for one in decisions]),
    }
