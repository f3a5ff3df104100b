"""Open billing accounts, and hold their rows while money moves."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db import connections, transaction

from billing.ledger.errors import AccountConflict
from billing.ledger.models import AccountKind, BillingAccount, ChargeSource, LedgerAccount, Tenant
from billing.ledger.post import ALIAS


@dataclass(frozen=True, slots=True)
class Account:
    """What a movement has to know of a billing account."""

    billing_account_id: str
    tenant_ref: str
    currency: str
    charge_source: str
    price_book_name: str


LOCK = """
SELECT billing_account_id, tenant_id, currency, charge_source, price_book_name,
       set_config('enable_seqscan', 'off', true)
  FROM billing_accounts WHERE billing_account_id = ANY (%s) ORDER BY billing_account_id FOR NO KEY UPDATE
"""
"""A session plans its foreign keys and guards once. Planned while a table was tiny, they would go on to scan it whole,
so no plan made in this transaction may."""


def lock_accounts(billing_account_ids: Collection[str]) -> dict[str, Account]:
    """Lock the accounts that exist, in one order, until the caller's transaction ends.

    Everything that moves money or settles a reservation takes these locks first, so no two of them can deadlock.
    """
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(LOCK, [sorted(set(billing_account_ids))])
        return {row[0]: Account(*row[:5]) for row in cursor.fetchall()}


def open_account(  # an account has this many properties, none of which ever changes
    *,
    billing_account_id: str,
    tenant_kind: str,
    tenant_id: str,
    currency: str,
    charge_source: ChargeSource,
    price_book_name: str,
    label: str = "",
) -> bool:
    """Open an account with its four ledger accounts. False if it is open already.

    All properties but the label are fixed for ever: `AccountConflict` if it is open with others, or if the tenant has
    an account already that is charged from telemetry, and this would be a second one.
    """
    tenant_ref = f"{tenant_kind}:{tenant_id}"
    with transaction.atomic(using=ALIAS, durable=True):
        Tenant.objects.bulk_create(
            [Tenant(tenant_ref=tenant_ref, tenant_kind=tenant_kind, tenant_id=tenant_id)], ignore_conflicts=True
        )
        wanted = (tenant_ref, currency, charge_source.value, price_book_name)
        BillingAccount.objects.bulk_create(
            [
                BillingAccount(
                    billing_account_id=billing_account_id,
                    tenant_id=tenant_ref,
                    currency=currency,
                    charge_source=charge_source,
                    price_book_name=price_book_name,
                    label=label,
                )
            ],
            ignore_conflicts=True,
        )
        properties = BillingAccount.objects.values_list("tenant_id", "currency", "charge_source", "price_book_name")
        if properties.filter(billing_account_id=billing_account_id).first() != wanted:
            raise AccountConflict(f"{billing_account_id}: {AccountConflict.__doc__}")
        existing = LedgerAccount.objects.filter(billing_account_id=billing_account_id).count()
        LedgerAccount.objects.bulk_create(
            [
                LedgerAccount(
                    ledger_account_id=f"{kind.value}:{billing_account_id}",
                    billing_account_id=billing_account_id,
                    kind=kind,
                    currency=currency,
                )
                for kind in AccountKind
            ],
            ignore_conflicts=True,
        )
        return existing == 0
