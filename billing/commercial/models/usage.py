"""Usage and cost facts, and what sweeps found. Append-only, and written by nobody but settling itself (C2, C10)."""

import pgtrigger
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from billing.commercial.models.plan import Entitlement, Meter, QuantityBasis
from billing.commercial.models.reservation import EndedBy, ReservationState, RuntimeReservation
from billing.commercial.models.subscription import EntitlementPeriod
from billing.ledger.models import picos
from outbox.guards import Guard, append_only, refusal


def _not_by_hand(*, name: str, message: str) -> Guard:
    """Refuse a row that does not come from the trigger on reservations."""
    return Guard(
        name=name,
        when=pgtrigger.Before,
        operation=pgtrigger.Insert,
        func=f"IF pg_trigger_depth() = 1 THEN {refusal(name, message)} END IF; RETURN NEW;",
    )


class UsageMeterEvent(models.Model):
    """What one settled reservation used. There is one for each, and none without: the same statement writes both."""

    reservation = models.OneToOneField(
        RuntimeReservation, on_delete=models.PROTECT, primary_key=True, db_constraint=False, related_name="usage"
    )
    generation = models.IntegerField()
    operation_sha256 = models.TextField()
    period = models.ForeignKey(EntitlementPeriod, on_delete=models.PROTECT, db_constraint=False, db_index=False)
    meter = models.ForeignKey(Meter, on_delete=models.PROTECT, db_constraint=False, db_index=False)
    entitlement = models.ForeignKey(Entitlement, on_delete=models.PROTECT, db_constraint=False, db_index=False)
    tool = models.TextField()
    dimension = models.TextField()
    quantity_basis = models.TextField(choices=QuantityBasis)
    quantity = models.BigIntegerField()
    provider_code = models.TextField(null=True)
    source = models.TextField(choices=EndedBy, help_text="Who saw the commit and settled.")
    occurred_at = models.DateTimeField(help_text="The time that decided the period.")
    recorded_at = models.DateTimeField(db_default=Now())

    owner_may_insert = False

    class Meta:
        db_table = "usage_meter_events"
        verbose_name = "usage"
        indexes = [models.Index(name="usage_meter_event_of_period", fields=["period", "reservation"])]
        triggers = [
            *append_only(name="usage_meter_event", message="Usage never changes."),
            _not_by_hand(
                name="usage_meter_event_by_settling",
                message="Usage is written when a reservation settles, and not otherwise.",
            ),
        ]


class CostEvent(models.Model):
    """What one usage costs the platform, exactly: units × unit cost, in pico-units of the currency."""

    usage = models.OneToOneField(
        UsageMeterEvent, on_delete=models.PROTECT, primary_key=True, db_constraint=False, related_name="cost"
    )
    price_book_ref = models.TextField()
    currency = models.TextField()
    quantity = models.BigIntegerField()
    unit_cost_picos = picos()
    amount_picos = picos()
    recorded_at = models.DateTimeField(db_default=Now())

    owner_may_insert = False

    class Meta:
        db_table = "commercial_cost_events"
        verbose_name = "cost"
        constraints = [
            models.CheckConstraint(
                name="commercial_cost_event_exact",
                condition=Q(amount_picos=F("unit_cost_picos") * F("quantity"), unit_cost_picos__gte=0),
            ),
            models.CheckConstraint(name="commercial_cost_event_currency", condition=Q(currency__regex=r"^[A-Z]{3}$")),
        ]
        triggers = [
            *append_only(name="commercial_cost_event", message="A cost never changes."),
            _not_by_hand(
                name="commercial_cost_event_by_settling",
                message="A cost is written when a reservation settles, and not otherwise.",
            ),
        ]


class SweepFinding(models.Model):
    """One generation of a reservation that a sweep ended, because nobody else had."""

    pk = models.CompositePrimaryKey("reservation_id", "generation")
    reservation_id = models.UUIDField()
    generation = models.IntegerField()
    business = models.TextField()
    outcome = models.TextField(choices=ReservationState)
    reserved_at = models.DateTimeField()
    found_at = models.DateTimeField(db_default=Now())

    owner_may_insert = False

    class Meta:
        db_table = "commercial_sweep_findings"
        verbose_name = "sweep finding"
        constraints = [
            models.CheckConstraint(
                name="commercial_sweep_finding_outcome",
                condition=Q(outcome__in=(ReservationState.SETTLED, ReservationState.RELEASED)),
            ),
        ]
        indexes = [models.Index(name="commercial_sweep_by_time", fields=["found_at", "reservation_id", "generation"])]
        triggers = [
            *append_only(name="commercial_sweep_finding", message="What a sweep found stays."),
            _not_by_hand(
                name="commercial_sweep_finding_by_ending",
                message="A finding is written when a sweep ends a reservation, and not otherwise.",
            ),
        ]
