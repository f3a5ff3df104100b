"""One attempt: an immutable start, and at most one immutable finish (O3, O19)."""

import pgtrigger
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q
from django.db.models.functions import Length, Now
from django.db.models.lookups import LessThanOrEqual

from outbox.guards import NEW_ROWS, Guard, append_only, refusal


class Outcome(models.TextChoices):
    """How an attempt ended (closed)."""

    ACKNOWLEDGED = "acknowledged", "Acknowledged: the receipt was verified"
    RETRYABLE = "retryable", "Retryable: nothing was applied, or the answer was not acceptable"
    NON_RETRYABLE = "non_retryable", "Non-retryable: the event can not be applied"
    LEASE_EXPIRED_UNKNOWN = "lease_expired_unknown", "Lease expired: nobody knows whether the consumer was reached"


class Disposition(models.TextChoices):
    """What followed from the outcome (closed)."""

    COMPLETE = "complete", "Complete"
    RETRY = "retry", "Tried again after a delay"
    QUARANTINE = "quarantine", "Quarantined"


class DeliveryAttemptStart(models.Model):
    """Written in the claim: from here on the consumer may have been reached."""

    attempt_id = models.UUIDField(primary_key=True)
    event_id = models.UUIDField()
    destination = models.TextField()
    attempt_no = models.IntegerField()
    lease_token = models.BigIntegerField()
    lease_owner = models.TextField()
    started_at = models.DateTimeField(db_default=Now())

    dispatch_may_select = True
    dispatch_may_insert = True
    owner_may_insert = False

    class Meta:
        db_table = "outbox_delivery_attempt_starts"
        verbose_name = "attempt"
        constraints = [
            models.UniqueConstraint(
                name="outbox_attempt_start_token", fields=["event_id", "destination", "lease_token"]
            ),
        ]
        triggers = [
            Guard(
                name="outbox_attempt_start_legal",
                level=pgtrigger.Statement,
                when=pgtrigger.After,
                operation=pgtrigger.Insert,
                referencing=NEW_ROWS,
                func=f"""
                    IF EXISTS (
                        SELECT FROM new_rows s
                        LEFT JOIN public.outbox_deliveries d
                          ON d.event_id = s.event_id AND d.destination = s.destination
                        WHERE (d.status = 'leased' AND d.current_attempt_id = s.attempt_id
                               AND d.lease_token = s.lease_token AND d.attempt_count = s.attempt_no
                               AND d.lease_owner = s.lease_owner) IS NOT TRUE
                    ) THEN
                        {refusal("outbox_attempt_start_legal", "A start belongs to the claim of its delivery.")}
                    END IF;
                    IF EXISTS (
                        SELECT FROM new_rows s
                        JOIN public.outbox_delivery_attempt_starts p
                          ON p.event_id = s.event_id AND p.destination = s.destination
                         AND p.lease_token = s.lease_token - 1
                        WHERE s.lease_token > 1
                          AND NOT EXISTS (SELECT FROM public.outbox_delivery_attempt_finishes f
                                           WHERE f.attempt_id = p.attempt_id)
                    ) THEN
                        {refusal("outbox_attempt_start_after_finish", "The attempt before this one has no finish yet.")}
                    END IF;
                    RETURN NULL;
                """,
            ),
            *append_only(name="outbox_attempt_start", message="Attempts are history; they never change."),
        ]


class DeliveryAttemptFinish(models.Model):
    """The one end of an attempt. A late worker finds it here and can add none of its own."""

    attempt = models.OneToOneField(
        DeliveryAttemptStart, on_delete=models.PROTECT, primary_key=True, related_name="finish"
    )
    finished_at = models.DateTimeField(db_default=Now())
    outcome = models.TextField(choices=Outcome)
    retry_disposition = models.TextField(choices=Disposition)
    retry_class = models.TextField(null=True)
    normalized_error_code = models.TextField(null=True)
    sanitized_error_ref = models.TextField(null=True)

    dispatch_may_select = True
    dispatch_may_insert = True
    owner_may_insert = False

    class Meta:
        db_table = "outbox_delivery_attempt_finishes"
        verbose_name = "attempt finish"
        verbose_name_plural = "attempt finishes"
        constraints = [
            models.CheckConstraint(
                name="outbox_attempt_finish_closed",
                condition=Q(outcome="acknowledged", retry_disposition="complete", normalized_error_code=None)
                | Q(outcome="retryable", retry_disposition__in=["retry", "quarantine"], retry_class__isnull=False)
                & Q(normalized_error_code__isnull=False)
                | Q(outcome="non_retryable", retry_disposition="quarantine", normalized_error_code__isnull=False)
                | Q(outcome="lease_expired_unknown", retry_disposition="retry"),
            ),
            models.CheckConstraint(
                name="outbox_attempt_finish_error_bounded",
                condition=Q(sanitized_error_ref=None) | Q(LessThanOrEqual(Length("sanitized_error_ref"), 1000)),
            ),
        ]
        indexes = [
            # Rows arrive in the order of their time, so the block ranges of the last minutes are few and cost nothing.
            BrinIndex(
                name="outbox_attempt_finish_time", fields=["finished_at"], pages_per_range=16, autosummarize=True
            ),
            models.Index(
                name="outbox_attempt_finish_failed", fields=["-finished_at"], condition=~Q(outcome="acknowledged")
            ),
        ]
        triggers = [
            Guard(
                name="outbox_attempt_finish_legal",
                level=pgtrigger.Statement,
                when=pgtrigger.After,
                operation=pgtrigger.Insert,
                referencing=NEW_ROWS,
                func=f"""
                    IF EXISTS (
                        SELECT FROM new_rows f
                        JOIN public.outbox_delivery_attempt_starts s ON s.attempt_id = f.attempt_id
                        LEFT JOIN public.outbox_deliveries d
                          ON d.event_id = s.event_id AND d.destination = s.destination
                        WHERE (CASE f.outcome
                                 WHEN 'lease_expired_unknown' THEN d.lease_token > s.lease_token
                                 ELSE d.current_attempt_id = s.attempt_id AND d.lease_token = s.lease_token
                                  AND d.status = CASE f.retry_disposition
                                        WHEN 'complete' THEN 'acknowledged'
                                        WHEN 'retry' THEN 'pending' ELSE 'quarantined' END
                               END) IS NOT TRUE
                    ) THEN
                        {refusal("outbox_attempt_finish_legal", "A finish reports the step its delivery took.")}
                    END IF;
                    RETURN NULL;
                """,
            ),
            *append_only(name="outbox_attempt_finish", message="Attempts are history; they never change."),
        ]
