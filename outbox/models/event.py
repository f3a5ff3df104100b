"""Committed events: immutable text, its digest, and columns that the database proves against the text (O2, O3, O5)."""

import pgtrigger
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from outbox.contracts.canonical import DIGEST_ALGORITHM
from outbox.guards import NEW_ROWS, Guard, never_delete, refusal, refuse_when

FROZEN = (
    "event_id",
    "event_type",
    "schema_version",
    "delivery_set_version",
    "delivery_set_definition_schema_version",
    "delivery_set_definition_digest_algorithm_version",
    "delivery_set_definition_digest",
    "aggregate_id",
    "aggregate_revision",
    "tenant_kind",
    "tenant_id",
    "workspace_id",
    "project_id",
    "correlation_id",
    "causation_id",
    "operation_id",
    "event_envelope",
    "event_envelope_digest_algorithm_version",
    "event_envelope_sha256",
    "occurred_at",
    "created_at",
)

ENVELOPE_HEAD = """
    '{"aggregateId":' || to_json(NEW.aggregate_id)::text
    || ',"aggregateRevision":' || NEW.aggregate_revision::text
    || coalesce(',"causationId":' || to_json(NEW.causation_id)::text, '')
    || ',"correlationId":' || to_json(NEW.correlation_id)::text
    || ',"eventId":"' || NEW.event_id::text
    || '","eventSchemaVersion":' || to_json(NEW.schema_version)::text
    || ',"eventType":' || to_json(NEW.event_type)::text
    || ',"occurredAt":"' || to_char(NEW.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    || '","operationId":' || to_json(NEW.operation_id)::text
    || ',"payload":'
"""
ENVELOPE_TAIL = """
    coalesce(',"projectId":' || to_json(NEW.project_id)::text, '')
    || ',"tenantId":' || to_json(NEW.tenant_id)::text
    || ',"tenantKind":' || to_json(NEW.tenant_kind)::text
    || ',"workspaceId":' || to_json(NEW.workspace_id)::text || '}'
"""
"""RFC 8785 sorts keys, so the canonical text is fixed up to the payload and after it, and what stands between must be
one JSON object: no second `eventId` can hide in there."""
DEFINITION_WAS_ACTIVE = """
    v.delivery_set_version = NEW.delivery_set_version AND v.status <> 'registered'
    AND v.delivery_set_definition_digest = NEW.delivery_set_definition_digest
    AND v.delivery_set_definition_schema_version = NEW.delivery_set_definition_schema_version
    AND v.delivery_set_definition_digest_algorithm_version = NEW.delivery_set_definition_digest_algorithm_version
"""


class OutboxEvent(models.Model):
    """One committed event. Written once by the owner; afterwards only `published_at` is set, once, by its function.

    `event_payload` is a function of the row (`sql/payload.sql`), read in SQL as `e.event_payload`: stored, it would be
    written a second time with every publishing.
    """

    event_id = models.UUIDField(primary_key=True)
    event_type = models.TextField()
    schema_version = models.TextField()
    delivery_set_version = models.TextField()
    delivery_set_definition_schema_version = models.TextField()
    delivery_set_definition_digest_algorithm_version = models.TextField()
    delivery_set_definition_digest = models.TextField()
    aggregate_id = models.TextField()
    aggregate_revision = models.BigIntegerField()
    tenant_kind = models.TextField()
    tenant_id = models.TextField()
    workspace_id = models.TextField()
    project_id = models.TextField(null=True)
    correlation_id = models.TextField()
    causation_id = models.TextField(null=True)
    operation_id = models.TextField()
    event_envelope = models.TextField(help_text="The canonical envelope, byte for byte.")
    event_envelope_digest_algorithm_version = models.TextField()
    event_envelope_sha256 = models.TextField()
    occurred_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now())
    published_at = models.DateTimeField(
        null=True, help_text="When all mandatory deliveries of the frozen definition were first acknowledged."
    )

    dispatch_may_select = True

    class Meta:
        db_table = "outbox_events"
        verbose_name = "event"
        constraints = [
            models.CheckConstraint(
                name="outbox_event_digest_algorithm",
                condition=Q(event_envelope_digest_algorithm_version=DIGEST_ALGORITHM),
            ),
            models.CheckConstraint(name="outbox_event_revision_from_1", condition=Q(aggregate_revision__gte=1)),
            models.CheckConstraint(
                name="outbox_event_published_after_created",
                condition=Q(published_at=None) | Q(published_at__gte=F("created_at")),
            ),
            models.UniqueConstraint(
                name="outbox_event_one_per_fact", fields=["aggregate_id", "event_type", "aggregate_revision"]
            ),
        ]
        triggers = [
            Guard(
                name="outbox_event_envelope",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                declare=[("raw", "bytea"), ("head", "bytea"), ("tail", "bytea"), ("payload", "bytea")],
                func=f"""
                    raw := convert_to(NEW.event_envelope, 'UTF8');
                    IF NEW.event_envelope_sha256 IS DISTINCT FROM encode(sha256(raw), 'hex') THEN
                        {refusal("outbox_event_digest", "The digest is not the SHA-256 of the stored envelope.")}
                    END IF;
                    head := convert_to({ENVELOPE_HEAD}, 'UTF8');
                    tail := convert_to({ENVELOPE_TAIL}, 'UTF8');
                    payload := substr(
                        raw, length(head) + 1, greatest(length(raw) - length(head) - length(tail), 0));
                    IF (raw = head || payload || tail) IS NOT TRUE THEN
                        {refusal("outbox_event_columns", "The columns do not say what the canonical envelope says.")}
                    END IF;
                    IF NOT (starts_with(convert_from(payload, 'UTF8'), '{{')
                            AND pg_input_is_valid(convert_from(payload, 'UTF8'), 'jsonb')) THEN
                        {refusal("outbox_event_columns", "The payload of the envelope is not one JSON object.")}
                    END IF;
                    IF NEW.published_at IS NOT NULL THEN
                        {refusal("outbox_event_published", "An event is not born published.")}
                    END IF;
                    RETURN NEW;
                """,
            ),
            Guard(
                name="outbox_event_mandatory_set",
                when=pgtrigger.After,
                operation=pgtrigger.Insert,
                timing=pgtrigger.Deferred,
                func=f"""
                    IF EXISTS (
                        SELECT FROM public.delivery_set_versions v
                         WHERE {DEFINITION_WAS_ACTIVE}
                           AND (SELECT count(*) FROM public.delivery_set_members m
                                 WHERE m.delivery_set_version = NEW.delivery_set_version
                                   AND m.event_type = NEW.event_type AND m.schema_version = NEW.schema_version
                                   AND m.mandatory)
                             = (SELECT nullif(count(*), 0) FROM public.outbox_deliveries d
                                 WHERE d.event_id = NEW.event_id AND d.mandatory)) THEN
                        RETURN NULL;
                    END IF;
                    IF NOT EXISTS (SELECT FROM public.delivery_set_versions v WHERE {DEFINITION_WAS_ACTIVE}) THEN
                        {refusal("outbox_event_definition", "No such definition was ever active here.")}
                    END IF;
                    {refusal("outbox_event_mandatory_set", "Deliveries are not exactly the mandatory members.")}
                """,
            ),
            refuse_when(
                name="outbox_event_frozen",
                operation=pgtrigger.Update,
                condition=" OR ".join(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in FROZEN),
                message="A committed event never changes.",
            ),
            refuse_when(
                name="outbox_event_published_once",
                operation=pgtrigger.Update,
                condition="NEW.published_at IS NULL OR OLD.published_at IS NOT NULL",
                message="published_at goes from empty to its first time, once.",
            ),
            Guard(
                name="outbox_event_published_complete",
                level=pgtrigger.Statement,
                when=pgtrigger.After,
                operation=pgtrigger.Update,
                referencing=NEW_ROWS,
                func=f"""
                    IF EXISTS (SELECT FROM new_rows n JOIN public.outbox_deliveries o ON o.event_id = n.event_id
                                WHERE o.mandatory AND o.status <> 'acknowledged') THEN
                        {refusal("outbox_event_published_complete", "A mandatory delivery is not acknowledged yet.")}
                    END IF;
                    RETURN NULL;
                """,
            ),
            *never_delete(name="outbox_event", message="Events leave only through the retention procedure."),
        ]
