"""Tenants, their billing accounts, and the ledger accounts behind each of them."""

import pgtrigger
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Concat, Now

from outbox.guards import append_only, never_delete, refuse_when


def picos(**options: object) -> "models.DecimalField[int, int]":
    """A column of whole pico-units, `numeric(38,0)`."""
    return models.DecimalField(max_digits=38, decimal_places=0, **options)  # type: ignore[arg-type]  # options are Django's


class ChargeSource(models.TextChoices):
    """From what an account is charged: one of the two, never both."""

    RUNS = "runs", "Runs: holds and finalized runs"
    TELEMETRY = "telemetry", "Telemetry: metered events of the account's clusters"


class AccountKind(models.TextChoices):
    """The ledger accounts of every billing account. Their balances sum to zero."""

    WALLET = "wallet", "Wallet: what the customer can still spend; never below zero"
    HELD = "held", "Held: set aside for admitted runs; never below zero"
    FUNDING = "funding", "Funding: the outside that paid in; the negative of all top-ups"
    REVENUE = "revenue", "Revenue: what was charged"


class Tenant(models.Model):
    """An organisation or a person."""

    tenant_ref = models.TextField(primary_key=True, help_text="kind:id")
    tenant_kind = models.TextField()
    tenant_id = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "tenants"
        constraints = [
            models.CheckConstraint(
                name="tenant_kind_closed", condition=Q(tenant_kind__in=("organization", "personal"))
            ),
            models.CheckConstraint(
                name="tenant_ref_is_kind_and_id",
                condition=Q(tenant_ref=Concat("tenant_kind", Value(":", output_field=models.TextField()), "tenant_id")),
            ),
        ]
        triggers = append_only(name="tenant", message="A tenant's identity never changes.")


class BillingAccount(models.Model):
    """One wallet of one tenant in one currency. Locking its row orders everything that moves its money."""

    billing_account_id = models.TextField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    currency = models.TextField()
    charge_source = models.TextField(choices=ChargeSource)
    price_book_name = models.TextField()
    label = models.TextField(db_default="", help_text="For people; may change.")
    opened_at = models.DateTimeField(db_default=Now())

    owner_may_update = ("label",)

    class Meta:
        db_table = "billing_accounts"
        constraints = [
            models.CheckConstraint(name="billing_account_currency", condition=Q(currency__regex=r"^[A-Z]{3}$")),
            models.CheckConstraint(
                name="billing_account_charge_source_closed", condition=Q(charge_source__in=ChargeSource.values)
            ),
            models.UniqueConstraint(
                name="billing_account_charged_from", fields=["billing_account_id", "charge_source"]
            ),
            models.UniqueConstraint(name="billing_account_in_currency", fields=["billing_account_id", "currency"]),
            # Telemetry names an organisation, never an account: it must find one, and only one.
            models.UniqueConstraint(
                name="billing_account_one_for_telemetry",
                fields=["tenant"],
                condition=Q(charge_source=ChargeSource.TELEMETRY),
            ),
        ]
        triggers = [
            *never_delete(name="billing_account", message="A billing account is never deleted."),
            refuse_when(
                name="billing_account_frozen",
                operation=pgtrigger.Update,
                condition="(NEW.billing_account_id, NEW.tenant_id, NEW.currency, NEW.charge_source,"
                " NEW.price_book_name, NEW.opened_at) IS DISTINCT FROM (OLD.billing_account_id, OLD.tenant_id,"
                " OLD.currency, OLD.charge_source, OLD.price_book_name, OLD.opened_at)",
                message="Only the label of a billing account may change.",
            ),
        ]


class LedgerAccount(models.Model):
    """One side of the ledger and its current balance."""

    ledger_account_id = models.TextField(primary_key=True, help_text="kind:billing account")
    billing_account = models.ForeignKey(
        BillingAccount, on_delete=models.PROTECT, related_name="ledger_accounts", db_constraint=False
    )
    kind = models.TextField(choices=AccountKind)
    currency = models.TextField()
    balance_picos = picos(db_default=0)

    class Meta:
        db_table = "ledger_accounts"
        constraints = [
            models.CheckConstraint(name="ledger_account_kind_closed", condition=Q(kind__in=AccountKind.values)),
            models.CheckConstraint(
                name="ledger_account_id_is_kind_and_account",
                condition=Q(
                    ledger_account_id=Concat(
                        "kind", Value(":", output_field=models.TextField()), F("billing_account_id")
                    )
                ),
            ),
            models.CheckConstraint(
                name="ledger_account_never_below_zero",
                condition=~Q(kind__in=(AccountKind.WALLET, AccountKind.HELD)) | Q(balance_picos__gte=0),
            ),
            models.UniqueConstraint(name="ledger_account_in_currency", fields=["ledger_account_id", "currency"]),
        ]
        triggers = [
            *never_delete(name="ledger_account", message="A ledger account is never deleted."),
            refuse_when(
                name="ledger_account_born_empty",
                operation=pgtrigger.Insert,
                condition="NEW.balance_picos IS DISTINCT FROM 0",
                message="A ledger account is born with a balance of zero; post entries.",
            ),
            refuse_when(
                name="ledger_account_frozen",
                operation=pgtrigger.Update,
                condition="(NEW.ledger_account_id, NEW.billing_account_id, NEW.kind, NEW.currency)"
                " IS DISTINCT FROM (OLD.ledger_account_id, OLD.billing_account_id, OLD.kind, OLD.currency)",
                message="Only the balance of a ledger account moves.",
            ),
        ]
