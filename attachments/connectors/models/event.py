"""What connectors delivered: each accepted event once, and payloads that contradict one (C4).

The payload is kept with its event, byte for byte as it was signed: it is what the tenant wanted to have. It stands in
this table and nowhere else, and no page shows it.
"""

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Length, Now
from django.db.models.lookups import LessThanOrEqual

from attachments.connectors.models.connector import Connector
from attachments.connectors.models.secret import ConnectorSecret
from outbox.guards import Guard, append_only, is_sha256, refusal, refuse_when

WEBHOOK_ID = r"^[\x21-\x2d\x2f-\x7e]+$"
"""Printable ASCII without a full stop, which delimits what is signed."""
LONGEST_WEBHOOK_ID = 255


def _own_secret(*, name: str, connector: str) -> Guard:
    """Refuse a row that says to be signed with a secret of another connector."""
    return Guard(
        name=name,
        when=pgtrigger.Before,
        operation=pgtrigger.Insert,
        func=f"""
            IF NOT EXISTS (SELECT FROM public.financial_connector_secrets s
                            WHERE s.secret_id = NEW.secret_id AND s.connector_id = {connector}) THEN
                {refusal(name, "What a connector delivers is signed with a secret of its own.")}
            END IF;
            RETURN NEW;
        """,
    )


class ConnectorEvent(models.Model):
    """One accepted event. What the sender calls it is unique per connector."""

    event_id = models.UUIDField(primary_key=True)
    connector = models.ForeignKey(Connector, on_delete=models.PROTECT, db_index=False)
    webhook_id = models.TextField(verbose_name="webhook id", help_text="What the sender calls the event.")
    body = models.BinaryField(help_text="The payload as it was signed.")
    body_bytes = models.IntegerField(help_text="Its length.")
    body_sha256 = models.TextField(help_text="Its digest.")
    sent_at = models.DateTimeField(help_text="When the sender made this attempt, as signed.")
    accepted_at = models.DateTimeField(db_default=Now())
    secret = models.ForeignKey(
        ConnectorSecret, on_delete=models.PROTECT, db_index=False, help_text="The secret that it was signed with."
    )

    class Meta:
        db_table = "financial_connector_events"
        verbose_name = "connector event"
        constraints = [
            models.CheckConstraint(
                name="connector_event_webhook_id",
                condition=Q(LessThanOrEqual(Length("webhook_id"), LONGEST_WEBHOOK_ID), webhook_id__regex=WEBHOOK_ID),
            ),
            models.UniqueConstraint(name="connector_event_once", fields=["webhook_id", "connector"]),
        ]
        indexes = [models.Index(name="connector_event_of_connector", fields=["connector", "event_id"])]
        triggers = [
            *append_only(name="connector_event", message="An accepted event never changes."),
            refuse_when(
                name="connector_event_digest",
                operation=pgtrigger.Insert,
                condition="(NEW.body_bytes, NEW.body_sha256) IS DISTINCT FROM"
                " (octet_length(NEW.body), encode(sha256(NEW.body), 'hex'))",
                message="Length and digest of an event are those of its body.",
            ),
            _own_secret(name="connector_event_own_secret", connector="NEW.connector_id"),
        ]


class ConnectorConflict(models.Model):
    """Another payload under the id of an accepted event. Each such payload stands once, however often it was sent."""

    conflict_id = models.UUIDField(primary_key=True)
    event = models.ForeignKey(ConnectorEvent, on_delete=models.PROTECT, db_index=False)
    body_bytes = models.IntegerField(help_text="Length of the payload that was refused.")
    body_sha256 = models.TextField(help_text="Its digest.")
    sent_at = models.DateTimeField(help_text="When the sender made the attempt, as signed.")
    seen_at = models.DateTimeField(db_default=Now())
    secret = models.ForeignKey(
        ConnectorSecret, on_delete=models.PROTECT, db_index=False, help_text="The secret that it was signed with."
    )

    class Meta:
        db_table = "financial_connector_conflicts"
        verbose_name = "connector conflict"
        constraints = [
            models.CheckConstraint(
                name="connector_conflict_digest", condition=is_sha256("body_sha256") & Q(body_bytes__gte=0)
            ),
            models.UniqueConstraint(name="connector_conflict_once", fields=["event", "body_sha256"]),
        ]
        triggers = [
            *append_only(name="connector_conflict", message="A conflict never changes."),
            Guard(
                name="connector_conflict_differs",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                func=f"""
                    IF EXISTS (SELECT FROM public.financial_connector_events e
                                WHERE e.event_id = NEW.event_id AND e.body_sha256 = NEW.body_sha256) THEN
                        {refusal("connector_conflict_differs", "The payload is that of the accepted event: a replay.")}
                    END IF;
                    RETURN NEW;
                """,
            ),
            _own_secret(
                name="connector_conflict_own_secret",
                connector="(SELECT connector_id FROM public.financial_connector_events WHERE event_id = NEW.event_id)",
            ),
        ]
