"""The registry of delivery-set definitions: immutable content, and a status beside it (O2, O6)."""

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from outbox.contracts.canonical import DIGEST_ALGORITHM
from outbox.guards import Guard, append_only, never_delete, refusal, refuse_when


class DeliverySetStatus(models.TextChoices):
    """Storage metadata of a definition; never part of its content."""

    REGISTERED = "registered", "Registered: known, not used by new events"
    ACTIVE = "active", "Active: new events freeze this definition"
    RETIRED = "retired", "Retired: was active; its pending events still converge on it"


TRANSITIONS: dict[DeliverySetStatus, dict[DeliverySetStatus, str]] = {
    DeliverySetStatus.REGISTERED: {DeliverySetStatus.ACTIVE: "activate"},
    DeliverySetStatus.ACTIVE: {DeliverySetStatus.RETIRED: "activate another version"},
    DeliverySetStatus.RETIRED: {},
}


DIGEST_COVERS = """
    replace(NEW.definition, '"deliverySetDefinitionDigest":"' || NEW.delivery_set_definition_digest || '",', '')
"""
"""The candidate: canonical text has sorted keys, so leaving the digest out is leaving one fragment out."""

REGISTERED_EVENTS = """
    SELECT e ->> 'eventType', e ->> 'eventSchemaVersion'
      FROM public.delivery_set_versions v, jsonb_array_elements(v.definition::jsonb -> 'applicableEvents') e
     WHERE v.delivery_set_version = NEW.delivery_set_version
"""
STORED_EVENTS = """
    SELECT event_type, schema_version FROM public.delivery_set_events
     WHERE delivery_set_version = NEW.delivery_set_version
"""
REGISTERED_MEMBERS = """
    SELECT m ->> 'eventType', m ->> 'eventSchemaVersion', m ->> 'destination', m ->> 'consumerName',
           (m ->> 'mandatory')::boolean, m ->> 'expectedReceiptType', m ->> 'expectedReceiptSchemaVersion',
           m #>> '{projectionTarget,state}', m #>> '{projectionTarget,projectionName}',
           m #>> '{projectionTarget,projectionVersion}'
      FROM public.delivery_set_versions v, jsonb_array_elements(v.definition::jsonb -> 'members') m
     WHERE v.delivery_set_version = NEW.delivery_set_version
"""
STORED_MEMBERS = """
    SELECT event_type, schema_version, destination, consumer_name, mandatory, expected_receipt_type,
           expected_receipt_schema_version, projection_target_state, projection_name, projection_version
      FROM public.delivery_set_members WHERE delivery_set_version = NEW.delivery_set_version
"""


def rows_are_the_definition() -> Guard:
    """At commit, the stored events and members are exactly those of the registered text."""
    pairs = ((REGISTERED_EVENTS, STORED_EVENTS), (REGISTERED_MEMBERS, STORED_MEMBERS))
    differs = " OR ".join(f"EXISTS (({left}) EXCEPT ({right}))" for a, b in pairs for left, right in ((a, b), (b, a)))
    return Guard(
        name="delivery_set_rows",
        when=pgtrigger.After,
        operation=pgtrigger.Insert,
        timing=pgtrigger.Deferred,
        func=f"""
            IF {differs} THEN
                {refusal("delivery_set_rows", "Events and members are not exactly those of the registered definition.")}
            END IF;
            RETURN NULL;
        """,
    )


FROZEN = (
    "delivery_set_version",
    "delivery_set_definition_schema_version",
    "delivery_set_definition_digest_algorithm_version",
    "delivery_set_definition_digest",
    "definition",
    "source_release",
    "registered_at",
)


class DeliverySetVersion(models.Model):
    """One registered definition. At most one is active in a database."""

    delivery_set_version = models.TextField(primary_key=True)
    delivery_set_definition_schema_version = models.TextField()
    delivery_set_definition_digest_algorithm_version = models.TextField()
    delivery_set_definition_digest = models.TextField()
    definition = models.TextField(help_text="The whole canonical definition, as registered.")
    status = models.TextField(choices=DeliverySetStatus, default=DeliverySetStatus.REGISTERED)
    activated_at = models.DateTimeField(null=True)
    source_release = models.TextField()
    registered_at = models.DateTimeField(db_default=Now())

    owner_may_insert = False
    dispatch_may_select = True

    class Meta:
        db_table = "delivery_set_versions"
        verbose_name = "delivery set"
        constraints = [
            models.CheckConstraint(name="delivery_set_status_closed", condition=Q(status__in=DeliverySetStatus.values)),
            models.CheckConstraint(
                name="delivery_set_activated_when_used",
                condition=Q(status="registered", activated_at=None) | ~Q(status="registered") & ~Q(activated_at=None),
            ),
            models.UniqueConstraint(name="delivery_set_one_active", fields=["status"], condition=Q(status="active")),
            models.UniqueConstraint(
                name="delivery_set_four_tuple",
                fields=[
                    "delivery_set_version",
                    "delivery_set_definition_schema_version",
                    "delivery_set_definition_digest_algorithm_version",
                    "delivery_set_definition_digest",
                ],
            ),
        ]
        triggers = [
            rows_are_the_definition(),
            refuse_when(
                name="delivery_set_digest",
                operation=pgtrigger.Insert,
                condition=f"""
                    (encode(sha256(convert_to({DIGEST_COVERS}, 'UTF8')), 'hex') = NEW.delivery_set_definition_digest
                     AND NEW.delivery_set_definition_digest_algorithm_version = '{DIGEST_ALGORITHM}'
                     AND NEW.definition::jsonb ->> 'deliverySetDefinitionDigest' = NEW.delivery_set_definition_digest
                     AND NEW.definition::jsonb ->> 'deliverySetVersion' = NEW.delivery_set_version
                     AND NEW.definition::jsonb ->> 'deliverySetDefinitionSchemaVersion'
                         = NEW.delivery_set_definition_schema_version) IS NOT TRUE
                """,
                message="The four-tuple does not match the definition's text.",
            ),
            refuse_when(
                name="delivery_set_frozen",
                operation=pgtrigger.Update,
                condition=" OR ".join(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in FROZEN),
                message="A registered delivery-set definition never changes; register a new version.",
            ),
            refuse_when(
                name="delivery_set_never_returns",
                operation=pgtrigger.Update,
                condition=(
                    "(OLD.status = 'retired' AND NEW.status <> 'retired')"
                    " OR (OLD.status <> 'registered' AND NEW.status = 'registered')"
                    " OR (OLD.activated_at IS NOT NULL AND NEW.activated_at IS DISTINCT FROM OLD.activated_at)"
                ),
                message="A delivery set goes registered, active, retired, and never back; register a new version.",
            ),
            *never_delete(name="delivery_set", message="Delivery sets are kept: events freeze them."),
        ]


class DeliverySetEvent(models.Model):
    """One applicable event pair of a definition."""

    pk = models.CompositePrimaryKey("delivery_set_version", "event_type", "schema_version")
    delivery_set_version = models.ForeignKey(
        DeliverySetVersion, on_delete=models.PROTECT, db_column="delivery_set_version", related_name="events"
    )
    event_type = models.TextField()
    schema_version = models.TextField()

    dispatch_may_select = True
    owner_may_insert = False

    class Meta:
        db_table = "delivery_set_events"
        triggers = [
            rows_are_the_definition(),
            *append_only(name="delivery_set_event", message="A registered definition never changes."),
        ]


class DeliverySetMember(models.Model):
    """One member of a definition: an event, a destination, and what must come back from there."""

    pk = models.CompositePrimaryKey("delivery_set_version", "event_type", "schema_version", "destination")
    delivery_set_version = models.ForeignKey(
        DeliverySetVersion, on_delete=models.PROTECT, db_column="delivery_set_version", related_name="members"
    )
    event_type = models.TextField()
    schema_version = models.TextField()
    destination = models.TextField()
    consumer_name = models.TextField()
    mandatory = models.BooleanField()
    expected_receipt_type = models.TextField()
    expected_receipt_schema_version = models.TextField()
    projection_target_state = models.TextField()
    projection_name = models.TextField(null=True)
    projection_version = models.TextField(null=True)

    dispatch_may_select = True
    owner_may_insert = False

    class Meta:
        db_table = "delivery_set_members"
        constraints = [
            models.CheckConstraint(
                name="delivery_set_member_projection_target",
                condition=Q(projection_target_state="required", destination="core_operations")
                & ~Q(projection_name=None)
                & ~Q(projection_version=None)
                | Q(projection_target_state="not_applicable", projection_name=None, projection_version=None)
                & ~Q(destination="core_operations"),
            ),
        ]
        triggers = [
            rows_are_the_definition(),
            *append_only(name="delivery_set_member", message="A registered definition never changes."),
        ]
