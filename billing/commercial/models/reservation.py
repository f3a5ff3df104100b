"""Runtime reservations of quota, and the key with which operations are identified (C2, C7)."""

from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Now

from billing.commercial.models.plan import Meter
from billing.commercial.models.subscription import EntitlementPeriod
from billing.ledger.models import picos
from outbox.guards import append_only, is_sha256, never_delete


class ReservationState(models.TextChoices):
    """Where a reservation stands. `TRANSITIONS` says how the states follow each other."""

    RESERVED = "reserved", "Reserved: quota is held until the marker of this generation decides"
    SETTLED = "settled", "Settled: the work committed and the quantity is used; terminal"
    RELEASED = "released", "Released: the work is refused and nothing is held; the operation may be tried again"


TRANSITIONS: dict[ReservationState, dict[ReservationState, str]] = {
    ReservationState.RESERVED: {
        ReservationState.SETTLED: "the marker says committed",
        ReservationState.RELEASED: "the marker says refused",
    },
    ReservationState.RELEASED: {
        ReservationState.RESERVED: "asked for again: next generation, checked again",
    },
    ReservationState.SETTLED: {},
}


class EndedBy(models.TextChoices):
    """Who looked at the marker and ended a generation."""

    COMPLETION = "completion", "Completion: the process that did the work, after its commit"
    COMPENSATION = "compensation", "Compensation: that process, after its rollback"
    CALLER = "caller", "Caller: business code that asked how it ended"
    SWEEP = "sweep", "Sweep: what a process left behind was found"


class RuntimeReservation(models.Model):
    """Quota set aside for one operation, identified by a keyed hash; one row per operation, for ever.

    Written by `commercial_reserve` (sql/reserve.sql); the owner's login may only end a generation. What a row must be
    is said by one guard (sql/whole.sql).
    """

    reservation_id = models.UUIDField(primary_key=True)
    operation_sha256 = models.TextField(help_text="Keyed hash of who does what; the operation's identity.")
    business = models.TextField(help_text="The owner in whose database the markers of this reservation are.")
    period = models.ForeignKey(EntitlementPeriod, on_delete=models.PROTECT, db_constraint=False, db_index=False)
    meter = models.ForeignKey(Meter, on_delete=models.PROTECT, db_constraint=False, db_index=False)
    quantity = models.BigIntegerField()
    generation = models.IntegerField(db_default=1)
    state = models.TextField(choices=ReservationState, db_default=ReservationState.RESERVED)
    as_of = models.DateTimeField(help_text="The time that decided the period.")
    reserved_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)
    ended_by = models.TextField(choices=EndedBy, null=True)
    provider_code = models.TextField(null=True, help_text="A short code of who provides the tool, fixed in the code.")
    cost_price_book_ref = models.TextField(null=True)
    cost_currency = models.TextField(null=True)
    unit_cost_picos = picos(null=True)

    owner_may_insert = False
    owner_may_update = ("state", "ended_at", "ended_by")

    class Meta:
        db_table = "commercial_runtime_reservations"
        verbose_name = "reservation"
        # Not `unique=True` on the field, which would cost the hot path a second index for LIKE.
        constraints = [models.UniqueConstraint(name="commercial_reservation_once", fields=["operation_sha256"])]
        indexes = [
            models.Index(
                name="commercial_held",
                fields=["reserved_at", "reservation_id"],
                include=["business", "period", "quantity", "generation"],
                condition=Q(state=ReservationState.RESERVED),
            ),
        ]
        triggers = never_delete(name="commercial_reservation", message="A reservation is never deleted.")


class IdentityKey(models.Model):
    """Which key hashes the identities of operations: a hash of its own, stored with the first reservation (C7)."""

    key_id = models.TextField(primary_key=True)
    singleton = models.BooleanField(db_default=Value(True), unique=True)
    known_since = models.DateTimeField(db_default=Now())

    owner_may_insert = False

    class Meta:
        db_table = "commercial_identity_keys"
        constraints = [
            models.CheckConstraint(name="commercial_identity_key_hashed", condition=is_sha256("key_id")),
            models.CheckConstraint(name="commercial_identity_key_only", condition=Q(singleton=True)),
        ]
        triggers = append_only(name="commercial_identity_key", message="The key that identifies operations stays.")
