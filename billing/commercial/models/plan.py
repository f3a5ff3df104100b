"""Plans, what they entitle to, and what is counted. All of it is imported once and never changes (C1, C10)."""

import pgtrigger
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Cast, Concat, Now

from outbox.contracts.canonical import DIGEST_ALGORITHM, MAX_INTEGER
from outbox.guards import Guard, append_only, refusal

SLASH = Value("/", output_field=models.TextField())


class QuantityBasis(models.TextChoices):
    """The unit in which quantities are counted."""

    EVENTS = "events", "Events: each accepted event is one"
    BYTES = "bytes", "Bytes: what was written, whatever is deleted later"


def _in_text(*, name: str, part: str, said: str) -> Guard:
    """Refuse a row that the canonical text of its plan does not hold among its `part`."""
    return Guard(
        name=name,
        when=pgtrigger.Before,
        operation=pgtrigger.Insert,
        func=f"""
            IF NOT EXISTS (
                SELECT FROM public.commercial_plans p, jsonb_array_elements(p.candidate::jsonb -> '{part}') said
                 WHERE p.plan_ref = NEW.plan_id AND said = {said}) THEN
                {refusal(name, "The text of the plan does not say this.")}
            END IF;
            RETURN NEW;
        """,
    )


class StoredPlan(models.Model):
    """`CommercialPlan@1`: the text its digest covers, and the columns by which it is found."""

    plan_ref = models.TextField(primary_key=True)
    schema_version = models.TextField()
    digest_algorithm_version = models.TextField()
    digest = models.TextField()
    candidate = models.TextField(help_text="The canonical text that the digest covers, byte for byte.")
    name = models.TextField()
    plan_version = models.BigIntegerField()
    imported_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "commercial_plans"
        verbose_name = "plan"
        constraints = [
            models.CheckConstraint(
                name="commercial_plan_schema_version",
                condition=Q(schema_version="1", digest_algorithm_version=DIGEST_ALGORITHM, plan_version__gte=1),
            ),
            models.CheckConstraint(
                name="commercial_plan_ref_says_which",
                condition=Q(
                    plan_ref=Concat(
                        Value("commercial-plan:", output_field=models.TextField()),
                        F("name"),
                        Value(":", output_field=models.TextField()),
                        Cast("plan_version", models.TextField()),
                    )
                ),
            ),
        ]
        indexes = [models.Index(name="commercial_plan_by_name", fields=["name", "plan_version"])]
        triggers = [
            *append_only(name="commercial_plan", message="A plan never changes; import a new version."),
            Guard(
                name="commercial_plan_digest",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                func=f"""
                    IF NEW.digest IS DISTINCT FROM encode(sha256(convert_to(NEW.candidate, 'UTF8')), 'hex') THEN
                        {refusal("commercial_plan_digest", "The digest is not the SHA-256 of the stored text.")}
                    END IF;
                    IF (NEW.candidate::jsonb ->> 'name', NEW.candidate::jsonb -> 'planVersion')
                       IS DISTINCT FROM (NEW.name, to_jsonb(NEW.plan_version)) THEN
                        {refusal("commercial_plan_columns", "The columns do not say what the text says.")}
                    END IF;
                    RETURN NEW;
                """,
            ),
            Guard(
                name="commercial_plan_whole",
                when=pgtrigger.After,
                operation=pgtrigger.Insert,
                timing=pgtrigger.Deferred,
                func=f"""
                    IF ((SELECT count(*) FROM public.commercial_entitlements e WHERE e.plan_id = NEW.plan_ref),
                        (SELECT count(*) FROM public.commercial_meters m WHERE m.plan_id = NEW.plan_ref))
                       IS DISTINCT FROM (jsonb_array_length(NEW.candidate::jsonb -> 'entitlements')::bigint,
                                         jsonb_array_length(NEW.candidate::jsonb -> 'meters')::bigint) THEN
                        {refusal("commercial_plan_whole", "A plan is stored with all its entitlements and meters.")}
                    END IF;
                    RETURN NULL;
                """,
            ),
        ]


class Entitlement(models.Model):
    """A hard limit per period of each subscription to the plan."""

    entitlement_id = models.TextField(primary_key=True, help_text="plan/name")
    plan = models.ForeignKey(StoredPlan, on_delete=models.PROTECT, related_name="entitlements")
    name = models.TextField()
    quantity_basis = models.TextField(choices=QuantityBasis)
    hard_limit = models.BigIntegerField()

    class Meta:
        db_table = "commercial_entitlements"
        constraints = [
            models.CheckConstraint(
                name="commercial_entitlement_id_says_which",
                condition=Q(entitlement_id=Concat(F("plan_id"), SLASH, F("name"))),
            ),
            models.CheckConstraint(
                name="commercial_entitlement_basis_closed", condition=Q(quantity_basis__in=QuantityBasis.values)
            ),
            models.CheckConstraint(
                name="commercial_entitlement_limit", condition=Q(hard_limit__gte=0, hard_limit__lte=MAX_INTEGER)
            ),
        ]
        triggers = [
            *append_only(name="commercial_entitlement", message="An entitlement never changes; import a new plan."),
            _in_text(
                name="commercial_entitlement_in_plan",
                part="entitlements",
                said="jsonb_build_object('name', NEW.name, 'quantityBasis', NEW.quantity_basis,"
                " 'hardLimit', NEW.hard_limit)",
            ),
        ]


class Meter(models.Model):
    """What is counted: one per tool and dimension of a plan. Its id is the version that usage names."""

    meter_id = models.TextField(primary_key=True, help_text="plan/tool/dimension")
    plan = models.ForeignKey(StoredPlan, on_delete=models.PROTECT, related_name="meters", db_index=False)
    entitlement = models.ForeignKey(Entitlement, on_delete=models.PROTECT, related_name="meters", db_index=False)
    tool = models.TextField()
    dimension = models.TextField()
    quantity_basis = models.TextField(choices=QuantityBasis)
    cost_price_book = models.TextField(null=True)
    cost_currency = models.TextField(null=True)
    cost_dimension = models.TextField(null=True)

    class Meta:
        db_table = "commercial_meters"
        constraints = [
            models.CheckConstraint(
                name="commercial_meter_id_says_which",
                condition=Q(meter_id=Concat(F("plan_id"), SLASH, F("tool"), SLASH, F("dimension"))),
            ),
            models.CheckConstraint(
                name="commercial_meter_cost_whole",
                condition=Q(cost_price_book=None, cost_currency=None, cost_dimension=None)
                | Q(cost_price_book__isnull=False, cost_currency__isnull=False, cost_dimension__isnull=False),
            ),
        ]
        indexes = [
            models.Index(name="commercial_meter_of_plan", fields=["plan", "tool", "dimension"]),
            models.Index(name="commercial_meter_of", fields=["entitlement", "tool", "dimension"]),
        ]
        triggers = [
            *append_only(name="commercial_meter", message="A meter never changes; import a new plan."),
            _in_text(
                name="commercial_meter_in_plan",
                part="meters",
                said="""jsonb_strip_nulls(jsonb_build_object(
                    'tool', NEW.tool, 'dimension', NEW.dimension, 'quantityBasis', NEW.quantity_basis,
                    'entitlement', substr(NEW.entitlement_id, length(NEW.plan_id) + 2),
                    'cost', CASE WHEN NEW.cost_price_book IS NOT NULL THEN jsonb_build_object(
                        'priceBook', NEW.cost_price_book, 'currency', NEW.cost_currency,
                        'chargeDimensionKey', NEW.cost_dimension) END))""",
            ),
            Guard(
                name="commercial_meter_unit",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                func=f"""
                    IF NOT EXISTS (SELECT FROM public.commercial_entitlements e
                                    WHERE e.entitlement_id = NEW.entitlement_id AND e.plan_id = NEW.plan_id
                                      AND e.quantity_basis = NEW.quantity_basis) THEN
                        {refusal("commercial_meter_unit", "A meter counts in the unit of its own plan's entitlement.")}
                    END IF;
                    RETURN NEW;
                """,
            ),
        ]
