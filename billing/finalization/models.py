"""Reservations of admitted runs, their finalization fences, and the work under each fence."""

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from billing.ledger.models import BillingAccount
from billing.pricing.models import StoredPriceBook
from outbox.contracts.canonical import DIGEST_ALGORITHM
from outbox.guards import Guard, append_only, is_sha256, never_delete, refusal, refuse_when


class ReservationState(models.TextChoices):
    """Where a reservation stands. `TRANSITIONS` says how the states follow each other."""

    OPEN = "open", "Open: the hold stands; `confirmed_at` tells whether core has the run"
    RELEASED = "released", "Released: core refused the operation and the hold was given back; terminal"


TRANSITIONS: dict[ReservationState, dict[ReservationState, str]] = {
    ReservationState.OPEN: {
        ReservationState.OPEN: "confirm: core has the run",
        ReservationState.RELEASED: "release: core stored a refusal, and the reservation was never confirmed",
    },
    ReservationState.RELEASED: {},
}

REFUSAL = (
    "admission_refusal_ref",
    "admission_refusal_schema_version",
    "admission_refusal_digest_algorithm_version",
    "admission_refusal_digest",
)
FROZEN = (
    "billing_reservation_id",
    "operation_id",
    "request_sha256",
    "run_id",
    "billing_account_id",
    "price_book_id",
    "run_admission_manifest_ref",
    "run_admission_manifest_schema_version",
    "run_admission_manifest_digest_algorithm_version",
    "run_admission_manifest_digest",
    "reserved_at",
)


class BillingReservation(models.Model):
    """What billing reserved for one operation. Its hold has the same id, and its money."""

    billing_reservation_id = models.TextField(primary_key=True)
    operation_id = models.TextField(unique=True)
    request_sha256 = models.TextField()
    run_id = models.TextField(unique=True)
    billing_account = models.ForeignKey(BillingAccount, on_delete=models.PROTECT)
    price_book = models.ForeignKey(StoredPriceBook, on_delete=models.PROTECT, db_index=False)
    run_admission_manifest_ref = models.TextField()
    run_admission_manifest_schema_version = models.TextField()
    run_admission_manifest_digest_algorithm_version = models.TextField()
    run_admission_manifest_digest = models.TextField()
    reserved_at = models.DateTimeField(db_default=Now())

    state = models.TextField(choices=ReservationState, db_default=ReservationState.OPEN)
    confirmed_at = models.DateTimeField(null=True, help_text="When billing learnt that core has the run.")
    released_at = models.DateTimeField(null=True)
    admission_refusal_ref = models.TextField(null=True)
    admission_refusal_schema_version = models.TextField(null=True)
    admission_refusal_digest_algorithm_version = models.TextField(null=True)
    admission_refusal_digest = models.TextField(null=True)

    owner_may_update = ("state", "confirmed_at", "released_at", *REFUSAL)

    class Meta:
        db_table = "billing_reservations"
        constraints = [
            models.CheckConstraint(name="billing_reservation_digest", condition=is_sha256("request_sha256")),
            models.CheckConstraint(
                name="billing_reservation_state_closed", condition=Q(state__in=ReservationState.values)
            ),
            models.CheckConstraint(
                name="billing_reservation_shape",
                condition=Q(state=ReservationState.OPEN, released_at=None, **dict.fromkeys(REFUSAL))
                | Q(
                    state=ReservationState.RELEASED,
                    confirmed_at=None,
                    released_at__isnull=False,
                    **{f"{column}__isnull": False for column in REFUSAL},
                ),
            ),
        ]
        indexes = [
            models.Index(
                name="reservation_unconfirmed",
                fields=["reserved_at", "billing_reservation_id"],
                condition=Q(state=ReservationState.OPEN, confirmed_at=None),
            ),
            models.Index(name="reservation_by_time", fields=["reserved_at", "billing_reservation_id"]),
        ]
        triggers = [
            *never_delete(name="billing_reservation", message="A reservation is never deleted."),
            refuse_when(
                name="billing_reservation_born_open",
                operation=pgtrigger.Insert,
                condition="NEW.state IS DISTINCT FROM 'open' OR NEW.confirmed_at IS NOT NULL",
                message="A reservation begins open and unconfirmed.",
            ),
            refuse_when(
                name="billing_reservation_frozen",
                operation=pgtrigger.Update,
                condition=" OR ".join(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in FROZEN),
                message="What was reserved never changes.",
            ),
            refuse_when(
                name="billing_reservation_transition",
                operation=pgtrigger.Update,
                condition="OLD.state <> 'open' OR OLD.confirmed_at IS NOT NULL",
                message="A reservation is confirmed or released once.",
            ),
            Guard(
                name="billing_reservation_equals_hold",
                when=pgtrigger.After,
                operation=pgtrigger.Insert | pgtrigger.Update,
                timing=pgtrigger.Deferred,
                func=f"""
                    IF NOT EXISTS (
                        SELECT 1 FROM public.billing_reservations r
                          JOIN public.ledger_holds h ON h.hold_id = r.billing_reservation_id
                         WHERE r.billing_reservation_id = NEW.billing_reservation_id
                           AND h.billing_account_id = r.billing_account_id
                           AND (r.state = 'open') = (h.state = 'held')) THEN
                        {refusal("billing_reservation_equals_hold", "An open reservation has an open hold.")}
                    END IF;
                    IF NOT EXISTS (SELECT 1 FROM public.billing_finalization_fences f
                                    WHERE f.billing_reservation_id = NEW.billing_reservation_id) THEN
                        {refusal("billing_reservation_has_fence", "A reservation has its fence from the beginning.")}
                    END IF;
                    RETURN NULL;
                """,
            ),
        ]


class FenceState(models.TextChoices):
    """How finalization of a run is coordinated."""

    PENDING = "pending", "Pending: the active work has to be done"
    UNADMITTED = "unadmitted", "Unadmitted: core refused the run, there is nothing to finalize; terminal"


class BillingFinalizationFence(models.Model):
    """The one row under whose lock the finalization of a run moves forward."""

    billing_finalization_fence_id = models.TextField(primary_key=True)
    billing_reservation = models.OneToOneField(BillingReservation, on_delete=models.PROTECT, related_name="fence")
    run_id = models.TextField(unique=True)
    fence_revision = models.BigIntegerField(db_default=1)
    coordination_state = models.TextField(choices=FenceState, db_default=FenceState.PENDING)
    latest_work_generation = models.BigIntegerField(db_default=1)
    active_work = models.OneToOneField(
        "StoredFinalizationWork", on_delete=models.PROTECT, null=True, related_name="active_in"
    )

    owner_may_update = ("fence_revision", "coordination_state", "latest_work_generation", "active_work_id")

    class Meta:
        db_table = "billing_finalization_fences"
        constraints = [
            models.CheckConstraint(
                name="billing_finalization_fence_state_closed", condition=Q(coordination_state__in=FenceState.values)
            ),
            models.CheckConstraint(
                name="billing_finalization_fence_shape",
                condition=Q(coordination_state=FenceState.PENDING, active_work__isnull=False)
                | Q(coordination_state=FenceState.UNADMITTED, active_work=None),
            ),
            models.CheckConstraint(
                name="billing_finalization_fence_counts",
                condition=Q(fence_revision__gte=1, latest_work_generation__gte=1),
            ),
        ]
        triggers = [
            *never_delete(name="billing_finalization_fence", message="A fence is never deleted."),
            refuse_when(
                name="billing_finalization_fence_forward",
                operation=pgtrigger.Update,
                condition="NEW.fence_revision <> OLD.fence_revision + 1"
                " OR NEW.latest_work_generation NOT IN (OLD.latest_work_generation, OLD.latest_work_generation + 1)"
                " OR OLD.coordination_state = 'unadmitted'"
                " OR (NEW.billing_finalization_fence_id, NEW.billing_reservation_id, NEW.run_id) IS DISTINCT FROM"
                " (OLD.billing_finalization_fence_id, OLD.billing_reservation_id, OLD.run_id)",
                message="A fence moves forward one revision at a time and keeps its identity.",
            ),
        ]


class StoredFinalizationWork(models.Model):
    """`BillingFinalizationWork@1`: the text its digest covers; ref, digest and time stand beside it."""

    billing_finalization_work_ref = models.TextField(primary_key=True)
    schema_version = models.TextField()
    digest_algorithm_version = models.TextField()
    digest = models.TextField()
    candidate = models.TextField(help_text="The canonical text that the digest covers, byte for byte.")
    fence = models.ForeignKey(BillingFinalizationFence, on_delete=models.PROTECT, related_name="works", db_index=False)
    work_generation = models.BigIntegerField()
    billing_finalization_operation_id = models.TextField(unique=True)
    created_at = models.DateTimeField()

    class Meta:
        db_table = "billing_finalization_works"
        constraints = [
            models.CheckConstraint(
                name="billing_finalization_work_version",
                condition=Q(schema_version="1", digest_algorithm_version=DIGEST_ALGORITHM, work_generation__gte=1),
            ),
            models.UniqueConstraint(name="billing_finalization_work_generation", fields=["fence", "work_generation"]),
        ]
        triggers = [
            *append_only(
                name="billing_finalization_work", message="Work never changes; the next generation replaces it."
            ),
            Guard(
                name="billing_finalization_work_digest",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                condition=pgtrigger.Condition(
                    "(NEW.digest IS DISTINCT FROM encode(sha256(convert_to(NEW.candidate, 'UTF8')), 'hex'))"
                ),
                func=refusal("billing_finalization_work_digest", "The digest is not the SHA-256 of the stored text."),
            ),
        ]
