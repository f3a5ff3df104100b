"""Open and end subscriptions (C1). Days begin where the database's calendar of the subscription's zone says so."""

from datetime import datetime

import orjson
from django.db import DatabaseError, transaction

from billing.commercial.catalogue import plan_ref
from billing.commercial.contracts import SubscriptionFile
from billing.commercial.errors import AmbiguousMeter, SubscriptionConflict, SubscriptionInvalid, UnknownSubscription
from billing.commercial.models import StoredPlan, Subscription
from billing.commercial.reserve import ALIAS
from billing.ledger.models import Tenant
from outbox.contracts.contract import ContractViolation
from outbox.raw import raw_cursor

UNKNOWN_ZONE = {"22023", "22007", "22008"}
"""SQLSTATEs of a zone or a day that does not exist."""
WITHOUT_FORM = {"commercial_subscription_zone", "commercial_subscription_half_open"}
MOMENTS = "SELECT commercial_moment(%s::date::timestamp, %s), commercial_moment(%s::date::timestamp, %s)"


def read_subscriptions(data: bytes) -> list[SubscriptionFile]:
    """The subscriptions in a JSON list. Raises `SubscriptionInvalid` that names the field."""
    try:
        return [SubscriptionFile.from_wire(item) for item in orjson.loads(data)]
    except (orjson.JSONDecodeError, ContractViolation, TypeError, AttributeError) as error:
        raise SubscriptionInvalid(f"{error}. {SubscriptionInvalid.__doc__}") from error


def open_subscription(file: SubscriptionFile) -> bool:
    """Open a subscription, and its tenant's entry if there is none. False if it is open already, as it is in the file.

    Raises `SubscriptionConflict` if it is open with other properties, `SubscriptionInvalid` for a plan, zone or day
    that does not exist, `AmbiguousMeter` if another one of the tenant counts the same at the same time.
    """
    plan = plan_ref(name=file.plan, plan_version=file.plan_version)
    if not StoredPlan.objects.filter(plan_ref=plan).exists():
        raise SubscriptionInvalid(f"There is no plan {plan}. {SubscriptionInvalid.__doc__}")
    tenant = Tenant(
        tenant_ref=f"{file.tenant_kind}:{file.tenant_id}", tenant_kind=file.tenant_kind, tenant_id=file.tenant_id
    )
    try:
        with transaction.atomic(using=ALIAS, durable=True):
            with raw_cursor(ALIAS) as cursor:
                cursor.execute(MOMENTS, (file.starts_on, file.zone, file.ends_on, file.zone))
                starts_at, ends_at = cursor.fetchone() or (None, None)
            wanted = Subscription(
                subscription_id=file.subscription_id, tenant_id=tenant.tenant_ref, plan_id=plan, zone=file.zone,
                period_unit=file.period, starts_at=starts_at, ends_at=ends_at,
            )  # fmt: skip
            if known := Subscription.objects.filter(subscription_id=file.subscription_id).first():
                return _same(known, wanted)
            Tenant.objects.bulk_create([tenant], ignore_conflicts=True)
            wanted.save(force_insert=True)
    except DatabaseError as error:
        if _constraint(error) == "commercial_subscription_one_meter":
            raise AmbiguousMeter(f"{file.subscription_id}: {AmbiguousMeter.__doc__}") from error
        if getattr(error.__cause__, "sqlstate", None) in UNKNOWN_ZONE or _constraint(error) in WITHOUT_FORM:
            raise SubscriptionInvalid(f"{file.subscription_id}: {SubscriptionInvalid.__doc__}") from error
        raise
    return True


def end_subscription(*, subscription_id: str, at: datetime) -> bool:
    """End it at this moment, which is the first that does not belong to it. False if it ends there already.

    Raises `UnknownSubscription`, and `SubscriptionConflict` if it ends at another moment or a later period is open.
    """
    try:
        with transaction.atomic(using=ALIAS, durable=True):
            row = Subscription.objects.select_for_update(no_key=True).filter(subscription_id=subscription_id).first()
            if row is None:
                raise UnknownSubscription(f"{subscription_id}: {UnknownSubscription.__doc__}")
            if row.ends_at is not None:
                if row.ends_at == at:
                    return False
                raise SubscriptionConflict(f"It ends at {row.ends_at.isoformat()}. {SubscriptionConflict.__doc__}")
            Subscription.objects.filter(subscription_id=subscription_id).update(ends_at=at)
    except DatabaseError as error:
        if _constraint(error) in {"commercial_subscription_ends", "commercial_subscription_half_open"}:
            raise SubscriptionConflict(f"{subscription_id}: {SubscriptionConflict.__doc__}") from error
        raise
    return True


def _same(known: Subscription, wanted: Subscription) -> bool:
    """False, since nothing is opened. Raises `SubscriptionConflict` if they differ; one that was ended stays ended."""
    fields = ("tenant_id", "plan_id", "zone", "period_unit", "starts_at")
    ended = known.ends_at != wanted.ends_at and wanted.ends_at is not None
    if ended or any(getattr(known, name) != getattr(wanted, name) for name in fields):
        raise SubscriptionConflict(f"{known.subscription_id}: {SubscriptionConflict.__doc__}")
    return False


def _constraint(error: DatabaseError) -> str | None:
    return getattr(getattr(error.__cause__, "diag", None), "constraint_name", None)
