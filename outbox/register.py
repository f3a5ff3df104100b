"""The delivery-set registry of one producer: insert-or-compare, activate, read (O6).

Runs under the schema role: registering is part of a release, not of the running service.
"""

from datetime import datetime

from django.conf import settings
from django.db import connections, transaction
from django.utils import timezone

from outbox.contracts.delivery_set import DeliverySetDefinition
from outbox.contracts.first_release import first_release
from outbox.models import DeliverySetEvent, DeliverySetMember, DeliverySetStatus, DeliverySetVersion


class DeliverySetConflict(Exception):
    """The version is registered with another content. Permanent: choose a new version for the new content."""


class DeliverySetUnknown(LookupError):
    """The version is not registered here. Register it first: `manage.py delivery_sets register`."""


class DeliverySetRetired(Exception):
    """A retired version is not activated again. Permanent: register a new version."""


def register(definition: DeliverySetDefinition, *, source_release: str, using: str) -> bool:
    """Insert the definition, or compare it with the registered one. True if it is new.

    Raises `DefinitionRefused` for an invalid definition, `DeliverySetConflict` for other content under its version.
    """
    definition.ensure_valid()
    text = definition.canonical().decode()
    own = definition.reference
    with transaction.atomic(using=using):
        row, created = DeliverySetVersion.objects.using(using).get_or_create(
            delivery_set_version=own.ref,
            defaults={
                "delivery_set_definition_schema_version": own.schema_version,
                "delivery_set_definition_digest_algorithm_version": own.digest_algorithm_version,
                "delivery_set_definition_digest": own.digest,
                "definition": text,
                "source_release": source_release,
            },
        )
        if not created:
            if row.definition != text:
                raise DeliverySetConflict(
                    f"Delivery set {own.ref!r} is registered with digest {row.delivery_set_definition_digest}, "
                    f"not {own.digest}. Choose a new version."
                )
            return False
        DeliverySetEvent.objects.using(using).bulk_create(
            DeliverySetEvent(
                delivery_set_version_id=own.ref, event_type=event.event_type, schema_version=event.event_schema_version
            )
            for event in definition.applicable_events
        )
        DeliverySetMember.objects.using(using).bulk_create(
            DeliverySetMember(
                delivery_set_version_id=own.ref,
                event_type=member.event_type,
                schema_version=member.event_schema_version,
                destination=member.destination,
                consumer_name=member.consumer_name,
                mandatory=member.mandatory,
                expected_receipt_type=member.expected_receipt_type,
                expected_receipt_schema_version=member.expected_receipt_schema_version,
                projection_target_state=member.projection_target.state,
                projection_name=getattr(member.projection_target, "projection_name", None),
                projection_version=getattr(member.projection_target, "projection_version", None),
            )
            for member in definition.members
        )
    return True


def register_first_release(*, using: str) -> DeliverySetDefinition:
    """Register the first release and answer its definition."""
    definition = first_release()
    register(definition, source_release=settings.RELEASE, using=using)
    return definition


def activate(version: str, *, using: str, now: datetime | None = None) -> bool:
    """Make `version` the one that new events freeze; the active one before it retires. False if it was active.

    Waits for appends under way and holds new ones back, so no event freezes a version after it retired.
    Raises `DeliverySetUnknown`, `DeliverySetRetired`.
    """
    with transaction.atomic(using=using):
        with connections[using].cursor() as cursor:
            cursor.execute("LOCK TABLE outbox_events, delivery_set_versions IN SHARE ROW EXCLUSIVE MODE")
        rows = DeliverySetVersion.objects.using(using)
        row = rows.filter(delivery_set_version=version).first()
        if row is None:
            raise DeliverySetUnknown(f"Delivery set {version!r} is not registered in {using!r}. Register it first.")
        if row.status == DeliverySetStatus.RETIRED:
            raise DeliverySetRetired(f"Delivery set {version!r} is retired. Register a new version.")
        if row.status == DeliverySetStatus.ACTIVE:
            return False
        rows.filter(status=DeliverySetStatus.ACTIVE).update(status=DeliverySetStatus.RETIRED)
        rows.filter(delivery_set_version=version).update(
            status=DeliverySetStatus.ACTIVE, activated_at=now or timezone.now()
        )
    return True


def active_definition(*, using: str) -> DeliverySetDefinition | None:
    """The active definition, parsed and proven from the stored text, or None."""
    row = DeliverySetVersion.objects.using(using).filter(status=DeliverySetStatus.ACTIVE).first()
    return DeliverySetDefinition.parse(row.definition.encode()) if row else None
