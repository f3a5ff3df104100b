"""Runtime reservations of quota, and the key with which operations are identified (C2, C7)."""

import pgtrigger
from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Now

from billing.commercial.models.plan import Meter
from billing.commercial.models.subscription import EntitlementPeriod
from billing.ledger.models import picos
from outbox.contracts.canonical import MAX_INTEGER
from outbox.guards import append_only, is_sha256, never_delete, refuse_when


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


SAME_OPERATION = ("reservation_id", "operation_sha256", "business", "quantity")
SAME_GENERATION = (
    *SAME_OPERATION,
    "generation",
    "period_id",
    "meter_id",
    "as_of",
    "reserved_at",
    "provider_code",
    "cost_price_book_ref",
    "cost_currency",
    "unit_cost_picos",
)


def _same(columns: tuple[str, ...]) -> str:
    new, old = (", ".join(f"{row}.{column}" for column in columns) for row in ("NEW", "OLD"))
    return f"({new}) IS NOT DISTINCT FROM ({old})"


class RuntimeReservation(models.Model):
    """Quota set aside for one operation, identified by a keyed hash; one row per operation, for ever.

    Written by `commercial_reserve` and `commercial_end` (sql/reserve.sql) and by nothing else.
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

    class Meta:
        db_table = "commercial_runtime_reservations"
        verbose_name = "reservation"
        constraints = [
            # Not `unique=True` on the field, which would cost the hot path a second index for LIKE.
            models.UniqueConstraint(name="commercial_reservation_once", fields=["operation_sha256"]),
            models.CheckConstraint(
                name="commercial_reservation_state_closed", condition=Q(state__in=ReservationState.values)
            ),
            models.CheckConstraint(
                name="commercial_reservation_quantity",
                condition=Q(quantity__gte=0, quantity__lte=MAX_INTEGER, generation__gte=1),
            ),
            models.CheckConstraint(
                name="commercial_reservation_provider",
                condition=Q(provider_code=None) | Q(provider_code__regex=r"^[a-z][a-z0-9_]{0,39}$"),
            ),
            models.CheckConstraint(
                name="commercial_reservation_shape",
                condition=Q(state=ReservationState.RESERVED, ended_at=None, ended_by=None)
                | (~Q(state=ReservationState.RESERVED) & Q(ended_at__isnull=False, ended_by__in=EndedBy.values)),
            ),
            models.CheckConstraint(
                name="commercial_reservation_cost_whole",
                condition=Q(cost_price_book_ref=None, cost_currency=None, unit_cost_picos=None)
                | Q(cost_price_book_ref__isnull=False, cost_currency__isnull=False, unit_cost_picos__gte=0),
            ),
        ]
        indexes = [
            models.Index(
                name="commercial_held",
                fields=["reserved_at", "reservation_id"],
                include=["business", "period", "quantity", "generation"],
                condition=Q(state=ReservationState.RESERVED),
            ),
        ]
        triggers = [
            *never_delete(name="commercial_reservation", message="A reservation is never deleted."),
            # A CHECK would match the patterns again at every later step.
            refuse_when(
                name="commercial_reservation_born",
                operation=pgtrigger.Insert,
                condition="(NEW.state = 'reserved' AND NEW.generation = 1 AND length(NEW.operation_sha256) = 64"
                " AND NEW.operation_sha256 ~ '^[0-9a-f]+$' AND NEW.business ~ '^[a-z][a-z_]*$') IS NOT TRUE",
                message="A reservation begins reserved, in its first generation, and is known by a keyed hash.",
            ),
            refuse_when(
                name="commercial_reservation_steps",
                operation=pgtrigger.Update,
                condition=f"""(
                    (OLD.state = 'reserved' AND NEW.state IN ('settled', 'released') AND {_same(SAME_GENERATION)})
                 OR (OLD.state = 'released' AND NEW.state = 'reserved' AND NEW.generation = OLD.generation + 1
                     AND {_same(SAME_OPERATION)})) IS NOT TRUE""",
                message="A generation ends once; after a release the next one begins; nothing else changes.",
            ),
        ]


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
