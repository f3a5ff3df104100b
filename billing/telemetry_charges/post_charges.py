"""Post what telemetry says was used, each generation of a charge once, later generations as differences (T13, M3, M4).

One batch is one transaction, decided in its order under the locks of the accounts; a refusal writes nothing and costs
no neighbour anything. The price is that of the book in effect when the window began. A charge keeps the book of its
first generation, as if everything had been known on time, unless that book cannot price what was used.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from django.db import connections

from billing.ledger.accounts import Account, lock_accounts
from billing.ledger.charge import Charge, charge
from billing.ledger.post import ALIAS, translated_transaction
from billing.pricing.books import prices_of
from billing.pricing.errors import UnknownPrice
from billing.pricing.quote import quote
from billing.telemetry_charges.known import Standing, balances, books_in_effect, payers, standing
from metering.consumption.contracts import (
    ChargeAnswer,
    ChargeConflicting,
    ChargePosted,
    ChargeRefusal,
    ChargeRefused,
    ChargeSuperseded,
    TelemetryCharge,
)
from outbox.contracts.canonical import encode_trusted
from outbox.contracts.contract import ContentReference, instant
from outbox.steps import reach

WRITE = """
WITH given AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS g (
        charge text, kind text, cluster text, window_start timestamptz, window_end timestamptz, organization text,
        applies_to text, account text, currency text, generation bigint, previous bigint, version text, algorithm text,
        digest text, candidate text, book text, amount numeric, delta numeric, posting text)
), begun AS (
    INSERT INTO telemetry_charges (charge_id, event_kind, cluster_id, window_start, window_end, organization_id,
                                   applies_to, billing_account_id, currency)
    SELECT charge, kind, cluster, window_start, window_end, organization, applies_to, account, currency
      FROM given WHERE previous IS NULL
)
INSERT INTO telemetry_charge_generations (charge_id, generation, previous_generation, schema_version,
        digest_algorithm_version, digest, candidate, price_book_id, amount_picos, delta_picos, posting_id)
SELECT charge, generation, previous, version, algorithm, digest, candidate, book, amount, delta, posting FROM given
 ORDER BY charge, generation
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Posting:
    """One generation that is to be written."""

    charge: TelemetryCharge
    account: Account
    price_book: ContentReference
    amount_picos: int
    delta_picos: int
    previous: int | None

    @property
    def reference(self) -> str | None:
        """The ledger's idempotency key; none where nothing is to be moved."""
        return f"charge:{self.charge.charge_id}:{self.charge.generation}" if self.delta_picos else None


def post_telemetry_charges(charges: Sequence[TelemetryCharge]) -> list[ChargeAnswer]:
    """One answer per charge, in order. Raises `ContractViolation`, `LedgerError` or a database error; then nothing of
    the batch is committed."""
    for one in charges:
        one.ensure_digest()
    with translated_transaction():
        batch = _Batch(charges)
        answers = [batch.decide(one) for one in charges]
        _write(batch.postings)
        reach("telemetry_charges.before_commit")
    reach("telemetry_charges.committed")
    return answers


class _Batch:
    """What is known about the charges of one batch while it is decided."""

    def __init__(self, charges: Sequence[TelemetryCharge]) -> None:
        self.postings: list[_Posting] = []
        self._payers = payers({one.organization_id for one in charges})
        self._accounts = lock_accounts([payer.billing_account_id for payer in self._payers.values() if payer.pays])
        self._balances = balances(self._accounts)
        self._standing = standing({one.charge_id for one in charges})
        paid = {one.charge_id: (account, one.window_start) for one in charges if (account := self._account(one))}
        self._books = books_in_effect(
            {charge: (account.billing_account_id, at) for charge, (account, at) in paid.items()}
        )

    def decide(self, one: TelemetryCharge) -> ChargeAnswer:
        """What becomes of the charge, given all before it in the batch."""
        known = self._standing.get(one.charge_id)
        account = self._account(one)
        if known is not None and one.generation < known.generation:
            return ChargeSuperseded(
                charge_id=one.charge_id, generation=one.generation, latest_generation=known.generation
            )
        if known is not None and (
            instant(one.window_end) != known.window_end
            or (one.generation == known.generation and one.reference.digest != known.digest)
        ):
            return ChargeConflicting(
                charge_id=one.charge_id, generation=one.generation, latest_generation=known.generation
            )
        if account is None:
            payer = self._payers.get(one.organization_id)
            return _refused(one, "charged_from_runs" if payer else "no_account")
        if known is not None and one.generation == known.generation:
            return _posted(one, account, known)
        return self._post(one, account, known)

    def _post(self, one: TelemetryCharge, account: Account, known: Standing | None) -> ChargeAnswer:
        in_effect = self._books.get(one.charge_id)
        books = [book for book in (known and known.price_book, in_effect) if book]
        if not books:
            return _refused(one, "no_price_book")
        priced = _price(one, books)
        if isinstance(priced, UnknownPrice):
            return _refused(one, "unknown_price", detail=str(priced).partition(":")[0])
        amount, book = priced
        delta = amount - (known.amount_picos if known else 0)
        if delta > self._balances[account.billing_account_id]:
            return _refused(one, "insufficient_funds")
        self._balances[account.billing_account_id] -= delta
        self.postings.append(
            _Posting(
                charge=one, account=account, price_book=book, amount_picos=amount, delta_picos=delta,
                previous=known.generation if known else None,
            )
        )  # fmt: skip
        now = Standing(one.generation, one.reference.digest, amount, instant(one.window_end), book)
        self._standing[one.charge_id] = now
        return _posted(one, account, now)

    def _account(self, one: TelemetryCharge) -> Account | None:
        payer = self._payers.get(one.organization_id)
        return self._accounts.get(payer.billing_account_id) if payer else None


def _posted(one: TelemetryCharge, account: Account, known: Standing) -> ChargeAnswer:
    return ChargePosted(
        charge_id=one.charge_id,
        generation=one.generation,
        billing_account_id=account.billing_account_id,
        price_book=known.price_book,
        currency=account.currency,
        amount_picos=str(known.amount_picos),
    )


def _refused(one: TelemetryCharge, reason: ChargeRefusal, *, detail: str | None = None) -> ChargeAnswer:
    return ChargeRefused(charge_id=one.charge_id, generation=one.generation, reason=reason, detail=detail)


def _price(one: TelemetryCharge, books: Sequence[ContentReference]) -> tuple[int, ContentReference] | UnknownPrice:
    unknown = UnknownPrice()
    for book in books:
        used = ((item.charge_dimension_key, int(item.quantity)) for item in one.quantities)
        try:
            return quote(used, prices=prices_of(book), applies_to=one.applies_to), book
        except UnknownPrice as error:
            unknown = error
    return unknown


def _write(postings: Sequence[_Posting]) -> None:
    if not postings:
        return
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(WRITE, [orjson.dumps([_row(posting) for posting in postings]).decode()])
    charge(
        [
            Charge(
                reference=posting.reference,
                billing_account_id=posting.account.billing_account_id,
                currency=posting.account.currency,
                amount_picos=posting.delta_picos,
            )
            for posting in postings
            if posting.reference
        ]
    )


def _row(posting: _Posting) -> dict[str, str | int | None]:
    one, own = posting.charge, posting.charge.reference
    return {
        "charge": one.charge_id,
        "kind": one.event_kind,
        "cluster": one.cluster_id,
        "window_start": one.window_start,
        "window_end": one.window_end,
        "organization": one.organization_id,
        "applies_to": one.applies_to,
        "account": posting.account.billing_account_id,
        "currency": posting.account.currency,
        "generation": one.generation,
        "previous": posting.previous,
        "version": own.schema_version,
        "algorithm": own.digest_algorithm_version,
        "digest": own.digest,
        "candidate": encode_trusted(one.candidate()).decode(),
        "book": posting.price_book.ref,
        "amount": str(posting.amount_picos),
        "delta": str(posting.delta_picos),
        "posting": posting.reference,
    }
