"""What each organisation owes for a window, and how far billing has posted it (T13)."""

import pgtrigger
from django.contrib.postgres.functions import TransactionNow
from django.db import models
from django.db.models import F, Q

from metering.consumption.models.line import units
from metering.otlp.fields import MAX_TEXT
from metering.otlp.models import EventKind
from outbox.guards import never_delete, refuse_when

QUANTITIES = ("input_tokens", "cached_input_tokens", "output_tokens", "samples", "samples_above_threshold")
"""The columns of what was used, one per charge dimension."""


class ChargeState(models.TextChoices):
    """How far a charge is. `TRANSITIONS` says how the states follow each other."""

    DUE = "due", "Due: it changed, and billing was not asked yet or did not answer"
    POSTED = "posted", "Posted: billing charges exactly this"
    REFUSED = "refused", "Refused: billing cannot charge it yet; it is asked again"
    NOT_CHARGED = "not_charged", "Not charged: the organisation is charged from runs"
    CONFLICTING = "conflicting", "Conflicting: billing holds something else; an operator must look"


TRANSITIONS: dict[ChargeState, dict[ChargeState, str]] = {
    ChargeState.DUE: {
        ChargeState.POSTED: "billing posted it",
        ChargeState.REFUSED: "billing refused it",
        ChargeState.NOT_CHARGED: "the organisation is charged from runs",
        ChargeState.CONFLICTING: "billing holds something else",
    },
    ChargeState.REFUSED: {
        ChargeState.DUE: "its quantities changed",
        ChargeState.POSTED: "billing posted it",
        ChargeState.NOT_CHARGED: "the organisation is charged from runs",
        ChargeState.CONFLICTING: "billing holds something else",
    },
    ChargeState.POSTED: {ChargeState.DUE: "its quantities changed"},
    ChargeState.NOT_CHARGED: {ChargeState.DUE: "its quantities changed"},
    ChargeState.CONFLICTING: {ChargeState.DUE: "an operator had it issued again"},
}
_STEPS = ", ".join(f"('{a.value}', '{b.value}')" for a, steps in TRANSITIONS.items() for b in (a, *steps))


class ConsumptionCharge(models.Model):
    """The sums of one organisation's lines of one window for one model or type of resource.

    The generation grows with every change of the quantities. What billing last posted stays beside them.
    """

    consumption_charge_id = models.BigAutoField(primary_key=True)
    kind = models.TextField(choices=EventKind)
    cluster_id = models.CharField(max_length=19, db_collation="C")
    window_start = models.DateTimeField()
    window_end = models.DateTimeField()
    organization_id = models.CharField(max_length=MAX_TEXT)
    applies_to = models.CharField(max_length=MAX_TEXT, help_text="The model, or the type of resource.")
    generation = models.BigIntegerField(db_default=1)
    input_tokens = units(db_default=0, help_text="Without those served from a cache.")
    cached_input_tokens = units(db_default=0)
    output_tokens = units(db_default=0)
    samples = units(db_default=0)
    samples_above_threshold = units(db_default=0)
    state = models.TextField(choices=ChargeState, db_default=ChargeState.DUE)
    ask_after = models.DateTimeField(null=True, db_default=TransactionNow())
    changed_at = models.DateTimeField(db_default=TransactionNow())
    charge_id = models.TextField(null=True, unique=True, help_text="Under which billing knows it.")
    answered_at = models.DateTimeField(null=True)
    refusal = models.TextField(null=True, help_text="Why billing refused it the last time.")
    refusal_detail = models.TextField(null=True)
    standing_generation = models.BigIntegerField(null=True, help_text="Of a conflict: what billing holds.")
    posted_generation = models.BigIntegerField(null=True)
    posted_sha256 = models.TextField(null=True, help_text="The digest of what was posted.")
    billing_account_id = models.TextField(null=True)
    price_book_ref = models.TextField(null=True)
    currency = models.TextField(null=True)
    amount_picos = units(null=True, help_text="The whole charge as posted, in pico-units.")

    owner_may_update = (
        "generation",
        *QUANTITIES,
        "state",
        "ask_after",
        "changed_at",
        "charge_id",
        "answered_at",
        "refusal",
        "refusal_detail",
        "standing_generation",
        "posted_generation",
        "posted_sha256",
        "billing_account_id",
        "price_book_ref",
        "currency",
        "amount_picos",
    )

    class Meta:
        db_table = "consumption_charges"
        constraints = [
            models.UniqueConstraint(
                name="consumption_charge_once",
                fields=["kind", "cluster_id", "window_start", "organization_id", "applies_to"],
            ),
            models.CheckConstraint(name="consumption_charge_kind_closed", condition=Q(kind__in=EventKind.values)),
            models.CheckConstraint(name="consumption_charge_state_closed", condition=Q(state__in=ChargeState.values)),
            models.CheckConstraint(
                name="consumption_charge_quantities",
                condition=Q(**{f"{name}__gte": 0 for name in QUANTITIES}, generation__gte=1)
                & (
                    Q(kind=EventKind.LLM_BILLING, samples=0, samples_above_threshold=0)
                    | Q(kind=EventKind.RESOURCE_UTILIZATION, input_tokens=0, cached_input_tokens=0, output_tokens=0)
                ),
            ),
            models.CheckConstraint(
                name="consumption_charge_shape",
                condition=Q(state=ChargeState.DUE, ask_after__isnull=False, refusal=None)
                | Q(state=ChargeState.REFUSED, ask_after__isnull=False, refusal__isnull=False)
                | Q(
                    state=ChargeState.POSTED,
                    ask_after=None,
                    refusal=None,
                    posted_generation=F("generation"),
                    posted_generation__isnull=False,
                )
                | Q(state=ChargeState.NOT_CHARGED, ask_after=None, refusal__isnull=False)
                | Q(state=ChargeState.CONFLICTING, ask_after=None, refusal=None, standing_generation__isnull=False),
            ),
            models.CheckConstraint(
                name="consumption_charge_posted_whole",
                condition=Q(
                    posted_generation=None,
                    posted_sha256=None,
                    billing_account_id=None,
                    price_book_ref=None,
                    currency=None,
                    amount_picos=None,
                )
                | Q(
                    posted_generation__gte=1,
                    posted_generation__lte=F("generation"),
                    posted_sha256__isnull=False,
                    billing_account_id__isnull=False,
                    price_book_ref__isnull=False,
                    currency__isnull=False,
                    amount_picos__gte=0,
                    amount_picos__isnull=False,
                    posted_generation__isnull=False,
                ),
            ),
        ]
        indexes = [
            models.Index(
                name="consumption_charge_to_ask",
                fields=["ask_after", "consumption_charge_id"],
                condition=Q(ask_after__isnull=False),
            ),
            models.Index(name="consumption_charge_by_state", fields=["state", "consumption_charge_id"]),
            models.Index(name="consumption_charge_of_payer", fields=["organization_id", "consumption_charge_id"]),
        ]
        triggers = [
            *never_delete(name="consumption_charge", message="A charge is never deleted."),
            refuse_when(
                name="consumption_charge_steps",
                operation=pgtrigger.Update,
                condition=f"(OLD.state, NEW.state) NOT IN ({_STEPS})",
                message="A charge's state follows the table of transitions.",
            ),
            refuse_when(
                name="consumption_charge_born_due",
                operation=pgtrigger.Insert,
                condition="NEW.state <> 'due' OR NEW.posted_generation IS NOT NULL",
                message="A charge begins as due.",
            ),
            refuse_when(
                name="consumption_charge_frozen",
                operation=pgtrigger.Update,
                condition="(NEW.consumption_charge_id, NEW.kind, NEW.cluster_id, NEW.window_start, NEW.window_end,"
                " NEW.organization_id, NEW.applies_to) IS DISTINCT FROM (OLD.consumption_charge_id, OLD.kind,"
                " OLD.cluster_id, OLD.window_start, OLD.window_end, OLD.organization_id, OLD.applies_to)"
                " OR (OLD.charge_id IS NOT NULL AND NEW.charge_id IS DISTINCT FROM OLD.charge_id)",
                message="What a charge is for never changes.",
            ),
            refuse_when(
                name="consumption_charge_generations_grow",
                operation=pgtrigger.Update,
                condition="NEW.generation < OLD.generation OR NEW.posted_generation < OLD.posted_generation"
                " OR (OLD.posted_generation IS NOT NULL AND NEW.posted_generation IS NULL)"
                f" OR (NEW.generation = OLD.generation AND ({', '.join(f'NEW.{name}' for name in QUANTITIES)})"
                f" IS DISTINCT FROM ({', '.join(f'OLD.{name}' for name in QUANTITIES)}))",
                message="Other quantities are another generation, and generations only grow.",
            ),
        ]
