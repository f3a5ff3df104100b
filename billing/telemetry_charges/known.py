"""What billing knows of charges that are asked for: who pays, what stands, which price book was in effect."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson
from django.db import connections

from billing.ledger.models import ChargeSource
from billing.ledger.post import ALIAS
from outbox.contracts.contract import ContentReference

PAYERS = """
SELECT DISTINCT ON (tenant_id) tenant_id, billing_account_id, charge_source FROM billing_accounts
 WHERE tenant_id = ANY (%s) ORDER BY tenant_id, charge_source = 'telemetry' DESC
"""
BALANCES = "SELECT billing_account_id, balance_picos FROM ledger_accounts WHERE ledger_account_id = ANY (%s)"
STANDING = """
SELECT DISTINCT ON (g.charge_id) g.charge_id, g.generation, g.digest, g.amount_picos, c.window_end,
       b.price_book_ref, b.schema_version, b.digest_algorithm_version, b.digest
  FROM telemetry_charge_generations g
  JOIN telemetry_charges c ON c.charge_id = g.charge_id
  JOIN price_books b ON b.price_book_ref = g.price_book_id
 WHERE g.charge_id = ANY (%s)
 ORDER BY g.charge_id, g.generation DESC
"""
BOOKS = """
SELECT g.charge, b.price_book_ref, b.schema_version, b.digest_algorithm_version, b.digest
  FROM json_to_recordset(%s::json) AS g (charge text, account text, began timestamptz)
  JOIN billing_accounts a ON a.billing_account_id = g.account
  JOIN LATERAL (
        SELECT * FROM price_books p
         WHERE p.name = a.price_book_name AND p.currency = a.currency AND p.effective_from <= g.began
         ORDER BY p.effective_from DESC LIMIT 1) b ON true
"""


@dataclass(frozen=True, slots=True)
class Payer:
    """The account of an organisation: the one that is charged from telemetry if it has it, else any other."""

    billing_account_id: str
    charge_source: str

    @property
    def pays(self) -> bool:
        """Whether telemetry is charged to it."""
        return self.charge_source == ChargeSource.TELEMETRY


@dataclass(frozen=True, slots=True)
class Standing:
    """The latest generation of a charge."""

    generation: int
    digest: str
    amount_picos: int
    window_end: datetime
    price_book: ContentReference


def payers(organization_ids: Collection[str]) -> dict[str, Payer]:
    """The payer of each organisation that has an account."""
    tenants = {f"organization:{organization}": organization for organization in organization_ids}
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(PAYERS, [sorted(tenants)])
        return {tenants[tenant]: Payer(account, source) for tenant, account, source in cursor.fetchall()}


def balances(billing_account_ids: Collection[str]) -> dict[str, int]:
    """What is in each wallet, in pico-units. The caller holds the accounts' rows."""
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(BALANCES, [[f"wallet:{account}" for account in sorted(billing_account_ids)]])
        return {account: int(balance) for account, balance in cursor.fetchall()}


def standing(charge_ids: Collection[str]) -> dict[str, Standing]:
    """The latest generation of each charge that has any. The caller holds the accounts' rows."""
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(STANDING, [sorted(charge_ids)])
        return {
            charge: Standing(generation, digest, int(picos), window_end, _reference(book))
            for charge, generation, digest, picos, window_end, *book in cursor.fetchall()
        }


def books_in_effect(charges: Mapping[str, tuple[str, str]]) -> dict[str, ContentReference]:
    """By charge: the book of an account (id) that was in effect at a time (wire timestamp), where there was one."""
    wanted = [{"charge": charge, "account": account, "began": began} for charge, (account, began) in charges.items()]
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(BOOKS, [orjson.dumps(wanted).decode()])
        return {charge: _reference(book) for charge, *book in cursor.fetchall()}


def _reference(parts: Sequence[str]) -> ContentReference:
    ref, schema_version, algorithm, digest = parts
    return ContentReference(
        ref=ref,
        schema_version=schema_version,
        digest_algorithm_version=algorithm,  # type: ignore[arg-type]  # the column admits the one algorithm only
        digest=digest,
    )
