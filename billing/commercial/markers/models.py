"""One row per thing that one transaction may commit once: the only evidence of how that transaction ended (C3, C9).

The business transaction inserts `committed` under the key before it touches anything else. Whoever has to know how it
ended inserts `refused` under the same key: the database lets one of them in. While the transaction is open, the other
side waits, which tells that somebody is at work.
"""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from outbox.guards import append_only


class MarkerKind(models.TextChoices):
    """What a marker is about."""

    RESERVATION = "reservation", "Reservation: one generation of a reservation of quota"
    WORK = "work", "Work: one scope of a business transaction, whether or not it reserved anything"


class Verdict(models.TextChoices):
    """How it ended, for ever."""

    COMMITTED = "committed", "Committed: the business transaction committed"
    REFUSED = "refused", "Refused: it did not, and can not any more"


class Marker(models.Model):
    """The verdict about one generation of one subject."""

    pk = models.CompositePrimaryKey("subject_id", "generation")
    subject_id = models.UUIDField()
    generation = models.IntegerField()
    kind = models.TextField(choices=MarkerKind)
    verdict = models.TextField(choices=Verdict)
    decided_at = models.DateTimeField(db_default=Now())

    journal_may_select = True
    journal_may_insert = True

    class Meta:
        db_table = "commercial_markers"
        verbose_name = "marker"
        constraints = [
            models.CheckConstraint(name="commercial_marker_verdict_closed", condition=Q(verdict__in=Verdict.values)),
            models.CheckConstraint(
                name="commercial_marker_generation",
                condition=Q(kind=MarkerKind.RESERVATION, generation__gte=1) | Q(kind=MarkerKind.WORK, generation=1),
            ),
        ]
        triggers = append_only(
            name="commercial_marker", message="A marker never changes: it says how a transaction ended."
        )
