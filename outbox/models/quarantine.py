"""Deliveries that can not be applied: explicit, visible, with their evidence (O3, O31)."""

import pgtrigger
from django.db import models
from django.db.models.functions import Now

from outbox.guards import Guard, append_only, refusal


class OutboxQuarantine(models.Model):
    """One quarantined delivery. `acknowledged_at` and `case_id` stay empty until a command contract fills them."""

    pk = models.CompositePrimaryKey("event_id", "destination")
    event_id = models.UUIDField()
    destination = models.TextField()
    attempt_id = models.UUIDField(unique=True)
    event_type = models.TextField()
    schema_version = models.TextField()
    reason = models.TextField()
    detail = models.TextField(null=True)
    event_envelope_digest_algorithm_version = models.TextField()
    event_envelope_sha256 = models.TextField()
    quarantined_at = models.DateTimeField(db_default=Now())
    acknowledged_at = models.DateTimeField(null=True)
    case_id = models.TextField(null=True)

    dispatch_may_select = True
    dispatch_may_insert = True
    owner_may_insert = False

    class Meta:
        db_table = "outbox_quarantine"
        verbose_name = "quarantined delivery"
        verbose_name_plural = "quarantine"
        indexes = [
            models.Index(name="outbox_quarantine_time", fields=["-quarantined_at"]),
            models.Index(
                name="outbox_quarantine_group", fields=["reason", "event_type", "destination", "quarantined_at"]
            ),
        ]
        triggers = [
            Guard(
                name="outbox_quarantine_legal",
                when=pgtrigger.After,
                operation=pgtrigger.Insert,
                func=f"""
                    IF NOT EXISTS (
                        SELECT FROM public.outbox_deliveries d JOIN public.outbox_events e USING (event_id)
                        WHERE d.event_id = NEW.event_id AND d.destination = NEW.destination
                          AND d.status = 'quarantined' AND d.current_attempt_id = NEW.attempt_id
                          AND e.event_type = NEW.event_type AND e.schema_version = NEW.schema_version
                          AND e.event_envelope_sha256 = NEW.event_envelope_sha256
                          AND e.event_envelope_digest_algorithm_version = NEW.event_envelope_digest_algorithm_version
                    ) THEN
                        {refusal("outbox_quarantine_legal", "No such delivery was quarantined.")}
                    END IF;
                    RETURN NULL;
                """,
            ),
            *append_only(name="outbox_quarantine", message="Quarantine is evidence; it never changes."),
        ]
