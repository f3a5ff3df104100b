"""Accepted events of other databases, byte for byte: what a rebuild replays beside core's own outbox (O26, O28)."""

from django.db import models
from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now

from outbox.contracts.canonical import DIGEST_ALGORITHM
from outbox.guards import append_only


class SourceEvent(models.Model):
    """One event that another owner committed and this projector accepted. Core's own events stay in its outbox."""

    event_id = models.UUIDField(primary_key=True)
    producer = models.TextField()
    event_type = models.TextField()
    schema_version = models.TextField()
    aggregate_id = models.TextField()
    aggregate_revision = models.BigIntegerField()
    event_envelope = models.TextField(help_text="The canonical envelope, byte for byte.")
    event_envelope_digest_algorithm_version = models.TextField()
    event_envelope_sha256 = models.TextField()
    delivery_set_version = models.TextField()
    delivery_set_definition_schema_version = models.TextField()
    delivery_set_definition_digest_algorithm_version = models.TextField()
    delivery_set_definition_digest = models.TextField()
    accepted_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "operations_source_events"
        verbose_name = "source event"
        constraints = [
            models.CheckConstraint(name="operations_source_not_core", condition=~Q(producer="core")),
            models.CheckConstraint(
                name="operations_source_algorithm",
                condition=Q(event_envelope_digest_algorithm_version=DIGEST_ALGORITHM),
            ),
            models.CheckConstraint(
                name="operations_source_digest",
                condition=RawSQL(
                    "event_envelope_sha256 = encode(sha256(convert_to(event_envelope, 'UTF8')), 'hex')",
                    (),
                    output_field=BooleanField(),
                ),
            ),
            models.CheckConstraint(
                name="operations_source_columns",
                condition=RawSQL(
                    "coalesce("
                    "event_envelope::jsonb ->> 'eventId' = event_id::text"
                    " AND event_envelope::jsonb ->> 'eventType' = event_type"
                    " AND event_envelope::jsonb ->> 'eventSchemaVersion' = schema_version"
                    " AND event_envelope::jsonb ->> 'aggregateId' = aggregate_id"
                    " AND event_envelope::jsonb ->> 'aggregateRevision' = aggregate_revision::text, false)",
                    (),
                    output_field=BooleanField(),
                ),
            ),
            models.UniqueConstraint(
                name="operations_source_one_per_fact",
                fields=["aggregate_id", "aggregate_revision", "event_type", "producer"],
            ),
        ]
        triggers = append_only(name="operations_source", message="Accepted events are the source of every rebuild.")
