"""Subscriptions of tenants to plans, and how full each entitlement is in each period (C1)."""

import pgtrigger
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from billing.commercial.models.plan import Entitlement, StoredPlan
from billing.ledger.models import Tenant
from outbox.guards import Guard, never_delete, refusal, refuse_when


class PeriodUnit(models.TextChoices):
    """How long a period is, by the calendar of the subscription's zone."""

    DAY = "day", "Day: from one day's first instant to the next one's"
    MONTH = "month", "Month: to the same day of the next month, or its last day if it has none such"
    YEAR = "year", "Year: to the same day of the next year"


class Subscription(models.Model):
    """One tenant's contract, from `starts_at` up to and without `ends_at`. Nothing of it changes, and it ends once.

    No two subscriptions of a tenant count the same tool and dimension at the same time (sql/periods.sql).
    """

    subscription_id = models.TextField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False)
    plan = models.ForeignKey(StoredPlan, on_delete=models.PROTECT)
    zone = models.TextField(help_text="Time zone by whose calendar periods begin and end.")
    period_unit = models.TextField(choices=PeriodUnit)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True, help_text="The first moment that does not belong to it.")
    opened_at = models.DateTimeField(db_default=Now())

    owner_may_update = ("ends_at",)

    class Meta:
        db_table = "commercial_subscriptions"
        constraints = [
            models.CheckConstraint(
                name="commercial_subscription_period_closed", condition=Q(period_unit__in=PeriodUnit.values)
            ),
            models.CheckConstraint(
                name="commercial_subscription_half_open", condition=Q(ends_at=None) | Q(ends_at__gt=F("starts_at"))
            ),
        ]
        indexes = [
            models.Index(name="commercial_subscription_of", fields=["tenant", "starts_at"]),
            models.Index(name="subscription_by_time", fields=["opened_at", "subscription_id"]),
        ]
        triggers = [
            *never_delete(name="commercial_subscription", message="A subscription is never deleted; it ends."),
            refuse_when(
                name="commercial_subscription_frozen",
                operation=pgtrigger.Update,
                condition="OLD.ends_at IS NOT NULL OR (NEW.subscription_id, NEW.tenant_id, NEW.plan_id, NEW.zone,"
                " NEW.period_unit, NEW.starts_at, NEW.opened_at) IS DISTINCT FROM (OLD.subscription_id,"
                " OLD.tenant_id, OLD.plan_id, OLD.zone, OLD.period_unit, OLD.starts_at, OLD.opened_at)",
                message="A subscription ends once, and nothing else of it changes.",
            ),
            Guard(
                name="commercial_subscription_zone",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                func=f"""
                    IF NOT EXISTS (SELECT FROM pg_timezone_names z WHERE z.name = NEW.zone) THEN
                        {refusal("commercial_subscription_zone", "The database knows no time zone of this name.")}
                    END IF;
                    RETURN NEW;
                """,
            ),
        ]


FROZEN = "A period moves with its reservations and ends with its subscription, and not otherwise."


class EntitlementPeriod(models.Model):
    """One entitlement in one period of one subscription: the row that is locked to decide, and what is taken of it.

    `taken_quantity` is used and held together. It moves with reservations, in their statement (sql/counts.sql), and no
    login role may write it. What is held is the sum of the reservations that are open now; the rest is used.
    """

    period_id = models.BigAutoField(primary_key=True)
    subscription = models.ForeignKey(Subscription, on_delete=models.PROTECT, db_index=False, related_name="periods")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_constraint=False, db_index=False)
    entitlement = models.ForeignKey(Entitlement, on_delete=models.PROTECT, db_index=False)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(help_text="The first moment that does not belong to it.")
    hard_limit = models.BigIntegerField()
    taken_quantity = models.BigIntegerField(db_default=0)
    opened_at = models.DateTimeField(db_default=Now())

    owner_may_insert = False
    owner_may_execute = (
        "commercial_reserve(uuid, text, text, text, text, text, text, text, bigint, text, timestamptz, text, text,"
        " numeric)",
        "commercial_release(uuid, integer, text)",
        "commercial_moment(timestamp, text)",
    )

    class Meta:
        db_table = "commercial_entitlement_periods"
        constraints = [
            models.UniqueConstraint(name="commercial_period_once", fields=["subscription", "entitlement", "starts_at"]),
            models.CheckConstraint(
                name="commercial_period_within_limit",
                condition=Q(taken_quantity__gte=0, taken_quantity__lte=F("hard_limit")),
            ),
        ]
        indexes = [models.Index(name="commercial_period_of_tenant", fields=["tenant", "ends_at"])]
        triggers = [
            *never_delete(name="commercial_period", message="A period is never deleted."),
            Guard(
                name="commercial_period_frozen",
                when=pgtrigger.Before,
                operation=pgtrigger.Update,
                func=f"""
                    IF pg_trigger_depth() = 1 OR (NEW.period_id, NEW.subscription_id, NEW.tenant_id, NEW.entitlement_id,
                        NEW.starts_at, NEW.hard_limit, NEW.opened_at) IS DISTINCT FROM (OLD.period_id,
                        OLD.subscription_id, OLD.tenant_id, OLD.entitlement_id, OLD.starts_at, OLD.hard_limit,
                        OLD.opened_at) OR NEW.ends_at > OLD.ends_at THEN
                        {refusal("commercial_period_frozen", FROZEN)}
                    END IF;
                    RETURN NEW;
                """,
            ),
            Guard(
                name="commercial_period_fits",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                declare=[("contract", "public.commercial_subscriptions")],
                func=f"""
                    IF NEW.taken_quantity IS DISTINCT FROM 0 THEN
                        {refusal("commercial_period_born_empty", "A period begins with nothing taken.")}
                    END IF;
                    IF NEW.starts_at >= NEW.ends_at THEN
                        {refusal("commercial_period_half_open", "A period has a beginning, and an end after it.")}
                    END IF;
                    SELECT * INTO contract FROM public.commercial_subscriptions s
                     WHERE s.subscription_id = NEW.subscription_id FOR NO KEY UPDATE;
                    IF NEW.tenant_id IS DISTINCT FROM contract.tenant_id OR NOT EXISTS (
                                   SELECT FROM public.commercial_entitlements e
                                    WHERE e.entitlement_id = NEW.entitlement_id AND e.plan_id = contract.plan_id
                                      AND e.hard_limit = NEW.hard_limit) THEN
                        {refusal("commercial_period_of_plan", "A period is of its subscription's tenant and plan.")}
                    END IF;
                    IF NEW.starts_at < contract.starts_at OR NEW.ends_at > contract.ends_at THEN
                        {refusal("commercial_period_in_contract", "A period lies within its subscription.")}
                    END IF;
                    IF EXISTS (SELECT FROM public.commercial_entitlement_periods o
                                WHERE o.subscription_id = NEW.subscription_id
                                  AND o.entitlement_id = NEW.entitlement_id AND o.starts_at <> NEW.starts_at
                                  AND o.starts_at < NEW.ends_at AND NEW.starts_at < o.ends_at) THEN
                        {refusal("commercial_period_alone", "Periods of an entitlement never overlap.")}
                    END IF;
                    RETURN NEW;
                """,
            ),
        ]
