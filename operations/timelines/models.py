"""The read model: one summary per verified run, its timeline, and where every exact id leads (O26, O29).

Rows of several projection versions stand side by side; readers see those of the active version.
"""

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from outbox.contracts.canonical import DIGEST_ALGORITHM
from outbox.guards import append_only, never_delete, refuse_when


class ReservationState(models.TextChoices):
    """What an operation knows of its reservation (closed)."""

    SOURCE_DELAYED = "source_delayed", "Source delayed: no reservation has arrived that belongs to the run"
    MISMATCHED = "mismatched", "Mismatched: a reservation arrived that contradicts the run, and none that fits"
    LINKED = "linked", "Linked: verified against the run"


_OF_THE_RUN = (
    "operation_id",
    "projection_version",
    "run_id",
    "run_event_id",
    "tenant_kind",
    "tenant_id",
    "workspace_id",
    "project_id",
    "correlation_id",
    "billing_account_id",
    "expected_reservation_id",
    "run_admission_manifest_ref",
    "run_admission_manifest_schema_version",
    "run_admission_manifest_digest_algorithm_version",
    "run_admission_manifest_digest",
    "run_created_at",
)
_NO_RESERVATION = Q(reservation_event_id=None, currency=None, hold_amount_picos=None, reserved_at=None)
_RESERVATION = ~Q(reservation_event_id=None) & ~Q(currency=None) & ~Q(hold_amount_picos=None) & ~Q(reserved_at=None)


class OperationSummary(models.Model):
    """One operation whose run event was verified. Reservation fields are empty until a reservation is verified too."""

    operation_id = models.TextField(db_collation="C")
    projection_version = models.TextField(db_collation="C")
    run_id = models.TextField(db_collation="C")
    run_event_id = models.UUIDField()
    tenant_kind = models.TextField()
    tenant_id = models.TextField()
    workspace_id = models.TextField()
    project_id = models.TextField(null=True)
    correlation_id = models.TextField()
    billing_account_id = models.TextField()
    expected_reservation_id = models.TextField(help_text="What the run event names; not a reservation that was seen.")
    run_admission_manifest_ref = models.TextField()
    run_admission_manifest_schema_version = models.TextField()
    run_admission_manifest_digest_algorithm_version = models.TextField()
    run_admission_manifest_digest = models.TextField()
    run_created_at = models.DateTimeField()
    reservation_state = models.TextField(choices=ReservationState)
    reservation_event_id = models.UUIDField(null=True)
    currency = models.TextField(null=True)
    hold_amount_picos = models.DecimalField(max_digits=38, decimal_places=0, null=True)
    reserved_at = models.DateTimeField(null=True)

    owner_may_update = (
        "reservation_state",
        "reservation_event_id",
        "currency",
        "hold_amount_picos",
        "reserved_at",
    )

    class Meta:
        db_table = "operation_summaries"
        verbose_name = "operation"
        constraints = [
            models.CheckConstraint(
                name="operation_reservation_state_closed", condition=Q(reservation_state__in=ReservationState.values)
            ),
            models.CheckConstraint(
                name="operation_reservation_only_when_linked",
                condition=Q(reservation_state="linked") & _RESERVATION
                | ~Q(reservation_state="linked") & _NO_RESERVATION,
            ),
            models.CheckConstraint(
                name="operation_manifest_algorithm",
                condition=Q(run_admission_manifest_digest_algorithm_version=DIGEST_ALGORITHM),
            ),
            models.UniqueConstraint(name="operation_one_summary", fields=["operation_id", "projection_version"]),
            models.UniqueConstraint(name="operation_one_per_run", fields=["run_id", "projection_version"]),
        ]
        triggers = [
            refuse_when(
                name="operation_summary_frozen",
                operation=pgtrigger.Update,
                condition=" OR ".join(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in _OF_THE_RUN),
                message="What a summary says of its run comes from one verified event and never changes.",
            ),
            refuse_when(
                name="operation_reservation_forward",
                operation=pgtrigger.Update,
                condition="OLD.reservation_state = 'linked' OR NEW.reservation_state = 'source_delayed'",
                message="A reservation goes delayed, mismatched, linked, and never back.",
            ),
            *never_delete(name="operation_summary", message="A summary is derived by a build and kept with it."),
        ]


class TimelineEntry(models.Model):
    """One applied event of one operation, in the order in which the facts occurred."""

    pk = models.CompositePrimaryKey("operation_id", "projection_version", "occurred_at", "event_id")
    operation_id = models.TextField(db_collation="C")
    projection_version = models.TextField(db_collation="C")
    occurred_at = models.DateTimeField()
    event_id = models.UUIDField()
    event_type = models.TextField()
    event_schema_version = models.TextField()
    producer = models.TextField()
    aggregate_id = models.TextField()
    aggregate_revision = models.BigIntegerField()
    correlation_id = models.TextField()
    causation_id = models.TextField(null=True)
    applied_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "timeline_entries"
        verbose_name = "timeline entry"
        verbose_name_plural = "timeline entries"
        triggers = append_only(name="timeline_entry", message="A timeline only grows; rebuild the projection instead.")


class LinkState(models.TextChoices):
    """What became of a reservation that arrived without a summary it could join (closed)."""

    PENDING = "pending", "Pending: the run event has not arrived"
    LINKED = "linked", "Linked: the run event arrived and agrees"
    MISMATCHED = "mismatched", "Mismatched: the run event contradicts it"


_OF_THE_WALLET = (
    "event_id",
    "projection_version",
    "run_id",
    "billing_reservation_id",
    "operation_id",
    "event_envelope",
    "event_envelope_sha256",
    "occurred_at",
    "recorded_at",
)


class PendingUnlinkedReservation(models.Model):
    """A `wallet.reserved` event that could not join a summary when it was applied: its run was missing, or contradicts.

    `disagreements` names what the two events say differently. No operation is built from this row alone.
    """

    event_id = models.UUIDField()
    projection_version = models.TextField(db_collation="C")
    run_id = models.TextField(db_collation="C")
    billing_reservation_id = models.TextField(db_collation="C")
    operation_id = models.TextField(db_collation="C")
    event_envelope = models.TextField(help_text="The canonical envelope, byte for byte, for the later verification.")
    event_envelope_sha256 = models.TextField()
    occurred_at = models.DateTimeField()
    recorded_at = models.DateTimeField(db_default=Now())
    state = models.TextField(choices=LinkState)
    run_event_id = models.UUIDField(null=True, help_text="The run event it was verified against.")
    disagreements = models.TextField(null=True)
    decided_at = models.DateTimeField(null=True)

    owner_may_update = ("state", "run_event_id", "disagreements", "decided_at")

    class Meta:
        db_table = "pending_unlinked_reservations"
        verbose_name = "unlinked reservation"
        constraints = [
            models.CheckConstraint(
                name="unlinked_state_closed",
                condition=Q(state="pending", run_event_id=None, disagreements=None, decided_at=None)
                | Q(state="linked", disagreements=None) & ~Q(run_event_id=None) & ~Q(decided_at=None)
                | Q(state="mismatched", disagreements__regex=r"^[a-z_]+(,[a-z_]+)*$")
                & ~Q(disagreements=None)
                & ~Q(run_event_id=None)
                & ~Q(decided_at=None),
            ),
            models.CheckConstraint(
                name="unlinked_digest",
                condition=models.expressions.RawSQL(
                    "event_envelope_sha256 = encode(sha256(convert_to(event_envelope, 'UTF8')), 'hex')",
                    (),
                    output_field=models.BooleanField(),
                ),
            ),
            models.UniqueConstraint(name="unlinked_one_per_event", fields=["event_id", "projection_version"]),
        ]
        indexes = [
            models.Index(
                name="unlinked_waiting_for_run", fields=["run_id", "projection_version"], condition=Q(state="pending")
            ),
            models.Index(name="unlinked_oldest", fields=["state", "recorded_at"]),
        ]
        triggers = [
            refuse_when(
                name="unlinked_born_undecided",
                operation=pgtrigger.Insert,
                condition="NEW.state = 'linked'",
                message="A reservation that fits its summary joins it and is not recorded here.",
            ),
            refuse_when(
                name="unlinked_decided_once",
                operation=pgtrigger.Update,
                condition="OLD.state <> 'pending' OR NEW.state = 'pending' OR "
                + " OR ".join(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in _OF_THE_WALLET),
                message="A pending reservation is linked or mismatched once; what its event said never changes.",
            ),
            *never_delete(name="unlinked_reservation", message="An unlinked reservation is evidence; it is kept."),
        ]


class IdentifierKind(models.TextChoices):
    """What an exact identifier names (closed)."""

    EVENT = "event", "Event"
    CORRELATION = "correlation", "Correlation"
    CAUSATION = "causation", "Caused by this event"
    RESERVATION = "reservation", "Reservation"
    RUN = "run", "Run"
    OPERATION = "operation", "Operation"


class ExactIdentifier(models.Model):
    """One exact identifier, the event that carries it, and the operation in whose timeline that event stands.

    `operation_id` is empty where the event was an unlinked reservation when it was applied: its row in
    `pending_unlinked_reservations` says what became of it. Run and operation ids of verified runs are keys of their
    summary and are not repeated here.
    """

    pk = models.CompositePrimaryKey("value", "kind", "event_id", "projection_version")
    value = models.TextField(db_collation="C")
    kind = models.TextField(choices=IdentifierKind, db_collation="C")
    event_id = models.UUIDField()
    projection_version = models.TextField(db_collation="C")
    operation_id = models.TextField(null=True, db_collation="C")

    class Meta:
        db_table = "exact_identifiers"
        verbose_name = "identifier"
        constraints = [
            models.CheckConstraint(name="identifier_kind_closed", condition=Q(kind__in=IdentifierKind.values)),
        ]
        triggers = append_only(name="identifier", message="The identifier index is derived by a build and only grows.")
