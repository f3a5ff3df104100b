"""Post movements of money, each once per reference (M4).

Whoever posts holds the rows of the billing accounts it moves (`lock_accounts`), so that movements of one account come
one after the other and deadlock with nobody. The database moves the balances, refuses a wallet below zero at once, and
proves at commit that every posting is complete and sums to zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from django.db import DatabaseError, connections, transaction

from billing.ledger.errors import PostingConflict, translate
from billing.ledger.models import AccountKind, ChargeSource, PostingKind
from outbox.contracts.canonical import digest

ALIAS = "billing"
CHARGES_FROM: dict[PostingKind, ChargeSource | None] = {
    PostingKind.TOP_UP: None,
    PostingKind.HOLD: ChargeSource.RUNS,
    PostingKind.RELEASE: ChargeSource.RUNS,
    PostingKind.CHARGE: ChargeSource.TELEMETRY,
}
"""From what an account must be charged for a posting of this kind."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: which ledger account of the posting's billing account, and by how many pico-units it grows."""

    kind: AccountKind
    amount_picos: int
    hold_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """One movement. `reference` stands for exactly this content, for ever."""

    reference: str
    kind: PostingKind
    billing_account_id: str
    currency: str
    entries: tuple[Entry, ...]

    @property
    def charge_source(self) -> ChargeSource | None:
        """What this charges the account from, if it charges."""
        return CHARGES_FROM[self.kind]

    def content_sha256(self) -> str:
        """What must be equal for a repeat to be the same movement."""
        return digest(
            {
                "kind": str(self.kind.value),
                "billingAccountId": self.billing_account_id,
                "currency": self.currency,
                "entries": [[str(e.kind.value), str(e.amount_picos), e.hold_id] for e in self.entries],
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewHold:
    """The hold that a posting of the same call opens."""

    hold_id: str
    billing_account_id: str
    currency: str
    amount_picos: int
    opened_by: str


POST = """
WITH posted AS (
    INSERT INTO ledger_postings (reference, kind, billing_account_id, charge_source, content_sha256, entry_count)
    SELECT p.* FROM json_to_recordset(%s::json) AS p (
        reference text, kind text, account text, source text, content text, entries smallint)
     ORDER BY p.reference
    ON CONFLICT (reference) DO NOTHING RETURNING reference
), held AS (
    INSERT INTO ledger_holds (hold_id, billing_account_id, currency, amount_picos, opened_by_id)
    SELECT h.* FROM json_to_recordset(%s::json) AS h (
        hold text, account text, currency text, picos numeric, opened_by text)
      JOIN posted ON posted.reference = h.opened_by
), entered AS (
    INSERT INTO ledger_entries (posting_id, line, ledger_account_id, currency, amount_picos, hold_id)
    SELECT e.* FROM json_to_recordset(%s::json) AS e (
        posting text, line smallint, ledger_account text, currency text, picos numeric, hold text)
      JOIN posted ON posted.reference = e.posting
)
SELECT reference FROM posted
"""
KNOWN = "SELECT reference, content_sha256 FROM ledger_postings WHERE reference = ANY (%s)"


def post(postings: Sequence[Posting], *, holds: Sequence[NewHold] = ()) -> frozenset[str]:
    """Post inside the caller's transaction on `billing`; returns the references that are new.

    A reference that was posted before with the same content is left as it is, with other content `PostingConflict` is
    raised. Raises `InsufficientFunds` at once; what is proven at commit is raised by `translated_transaction`.
    """
    if not postings:
        return frozenset()
    lines = [
        {
            "posting": posting.reference,
            "line": line,
            "ledger_account": f"{entry.kind.value}:{posting.billing_account_id}",
            "currency": posting.currency,
            "picos": str(entry.amount_picos),
            "hold": entry.hold_id,
        }
        for posting in postings
        for line, entry in enumerate(posting.entries, start=1)
    ]
    heads: list[dict[str, str | int | None]] = [
        {
            "reference": posting.reference,
            "kind": posting.kind.value,
            "account": posting.billing_account_id,
            "source": posting.charge_source.value if posting.charge_source else None,
            "content": posting.content_sha256(),
            "entries": len(posting.entries),
        }
        for posting in postings
    ]
    opened = [
        {
            "hold": hold.hold_id,
            "account": hold.billing_account_id,
            "currency": hold.currency,
            "picos": str(hold.amount_picos),
            "opened_by": hold.opened_by,
        }
        for hold in holds
    ]
    with connections[ALIAS].cursor() as cursor:
        try:
            cursor.execute(POST, [orjson.dumps(part).decode() for part in (heads, opened, lines)])
        except DatabaseError as error:
            translate(error)
        fresh = frozenset(reference for (reference,) in cursor.fetchall())
    _ensure_same([head for head in heads if head["reference"] not in fresh])
    return fresh


def _ensure_same(heads: Sequence[dict[str, str | int | None]]) -> None:
    if not heads:
        return
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(KNOWN, [[head["reference"] for head in heads]])
        known = dict(cursor.fetchall())
    for head in heads:
        if known.get(head["reference"]) != head["content"]:
            raise PostingConflict(f"{head['reference']}: {PostingConflict.__doc__}")


class translated_transaction:  # noqa: N801  # a context manager, read as a verb like `atomic`
    """`atomic(using="billing", durable=True)` whose commit may be refused: the refusal is raised as a `LedgerError`."""

    def __init__(self) -> None:
        self._atomic = transaction.atomic(using=ALIAS, durable=True)

    def __enter__(self) -> None:
        self._atomic.__enter__()

    def __exit__(self, *raised: object) -> None:
        try:
            self._atomic.__exit__(*raised)  # type: ignore[arg-type]  # what the interpreter passes
        except DatabaseError as error:
            translate(error)
