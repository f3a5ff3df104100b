"""Import plans: content-addressed, each version once, never changed (C1)."""

import orjson
from django.db import DatabaseError, IntegrityError, transaction

from billing.commercial.contracts import CommercialPlan, PlanFile
from billing.commercial.errors import PlanConflict, PlanInvalid
from billing.commercial.models import Entitlement, Meter, StoredPlan
from billing.commercial.reserve import ALIAS
from outbox.contracts.canonical import NotCanonicalSafe, encode_trusted
from outbox.contracts.contract import ContractViolation


def read_plans(data: bytes) -> list[CommercialPlan]:
    """The plans in a JSON list, each with its digest. Raises `PlanInvalid` that names the field."""
    try:
        return [_plan(PlanFile.from_wire(item)) for item in orjson.loads(data)]
    except (orjson.JSONDecodeError, ContractViolation, NotCanonicalSafe, TypeError, AttributeError) as error:
        raise PlanInvalid(f"{error}. {PlanInvalid.__doc__}") from error


def plan_ref(*, name: str, plan_version: int) -> str:
    """The reference under which a plan is stored."""
    return f"commercial-plan:{name}:{plan_version}"


def import_plan(plan: CommercialPlan) -> bool:
    """Store a plan with its entitlements and meters. False if this very plan is stored.

    Raises `PlanConflict` if another one has its name and version, `PlanInvalid` if the database refuses a meter.
    """
    own = plan.reference
    try:
        with transaction.atomic(using=ALIAS, durable=True):
            StoredPlan.objects.create(
                plan_ref=own.ref,
                schema_version=own.schema_version,
                digest_algorithm_version=own.digest_algorithm_version,
                digest=own.digest,
                candidate=encode_trusted(plan.candidate()).decode(),
                name=plan.name,
                plan_version=plan.plan_version,
            )
            Entitlement.objects.bulk_create(
                Entitlement(
                    entitlement_id=f"{own.ref}/{entitlement.name}",
                    plan_id=own.ref,
                    name=entitlement.name,
                    quantity_basis=entitlement.quantity_basis,
                    hard_limit=entitlement.hard_limit,
                )
                for entitlement in plan.entitlements
            )
            Meter.objects.bulk_create(
                Meter(
                    meter_id=f"{own.ref}/{meter.tool}/{meter.dimension}",
                    plan_id=own.ref,
                    entitlement_id=f"{own.ref}/{meter.entitlement}",
                    tool=meter.tool,
                    dimension=meter.dimension,
                    quantity_basis=meter.quantity_basis,
                    cost_price_book=meter.cost.price_book if meter.cost else None,
                    cost_currency=meter.cost.currency if meter.cost else None,
                    cost_dimension=meter.cost.charge_dimension_key if meter.cost else None,
                )
                for meter in plan.meters
            )
    except IntegrityError as error:
        known = StoredPlan.objects.filter(plan_ref=own.ref).values_list("digest", flat=True).first()
        if known is None:
            raise
        if known != own.digest:
            raise PlanConflict(f"{own.ref}: {PlanConflict.__doc__}") from error
        return False
    except DatabaseError as error:
        constraint = getattr(getattr(error.__cause__, "diag", None), "constraint_name", None)
        if constraint != "commercial_meter_unit":
            raise
        raise PlanInvalid(f"{own.ref}: a meter counts in the unit of its entitlement. {PlanInvalid.__doc__}") from error
    return True


def _plan(file: PlanFile) -> CommercialPlan:
    return CommercialPlan.issue(
        ref=plan_ref(name=file.name, plan_version=file.plan_version),
        name=file.name,
        plan_version=file.plan_version,
        entitlements=tuple(sorted(file.entitlements, key=lambda entitlement: entitlement.name)),
        meters=tuple(sorted(file.meters, key=lambda meter: meter.key)),
    )
