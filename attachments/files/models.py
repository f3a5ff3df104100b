"""The journal of the stored tree: what somebody was about to change, written down before the first rename (C5, C9).

An intent is committed through a connection of its own, so it outlives the transaction that it belongs to. Whoever finds
one open asks the marker of that transaction how it ended, and finishes or takes back what the intent says. Only the
holder of an open intent's row touches the disk for it.
"""

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Left, Now

from outbox.guards import Guard, never_delete, refusal, refuse_when

UUID_TEXT = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
FOLDER_LENGTH = 73
"""Two UUIDs and the slash between them."""


class Action(models.TextChoices):
    """What is about to happen to a stored path."""

    PLACE = "place", "Place: a received file comes there; what stood there goes aside"
    REMOVE = "remove", "Remove: a file or a folder goes aside"


class IntentState(models.TextChoices):
    """Where an intent stands. `TRANSITIONS` says how the states follow each other."""

    OPEN = "open", "Open: what it says may have begun; the backup, if there is one, is kept"
    KEPT = "kept", "Kept: the transaction committed, the change stays, its backup is gone; terminal"
    UNDONE = "undone", "Undone: the transaction did not commit and the tree is as it was; terminal"


TRANSITIONS: dict[IntentState, dict[IntentState, str]] = {
    IntentState.OPEN: {
        IntentState.KEPT: "the marker says committed",
        IntentState.UNDONE: "the marker says refused, or the scope rolled back",
    },
    IntentState.KEPT: {},
    IntentState.UNDONE: {},
}


class IntentEndedBy(models.TextChoices):
    """Who ended an intent."""

    COMPLETION = "completion", "Completion: the process that made the change, after its commit"
    COMPENSATION = "compensation", "Compensation: that process, after its rollback"
    SUCCESSOR = "successor", "Successor: a later change below the same claim, which found it open"
    SWEEP = "sweep", "Sweep: what a process left behind was found"


OVERLAPS = """
(starts_with(i.path || '/', NEW.path || '/') OR starts_with(NEW.path || '/', i.path || '/'))
"""
ONE_AT_A_TIME = f"""
PERFORM pg_advisory_xact_lock(hashtextextended(left(NEW.path, {FOLDER_LENGTH}), 0));
IF EXISTS (SELECT FROM staged_file_intents i
            WHERE i.state = 'open' AND i.folder = left(NEW.path, {FOLDER_LENGTH})
              AND (i.transaction_id <> NEW.transaction_id OR i.failures > 0) AND {OVERLAPS}) THEN
    {refusal("staged_file_one_at_a_time", "Another open intent is about this path, or about one above or below it.")}
END IF;
RETURN NEW;
"""


class FileIntent(models.Model):
    """One change of one stored path. Everything but how it ended is fixed when it is written."""

    sequence = models.BigAutoField(primary_key=True, help_text="Within one folder, in the order of the changes.")
    intent_id = models.UUIDField(unique=True, help_text="Names the backup: .NAME.INTENT.old beside the path.")
    transaction_id = models.UUIDField(help_text="The business transaction, with all its savepoints.")
    marker_id = models.UUIDField(help_text="The marker of the scope that it belongs to: it decides.")
    action = models.TextField(choices=Action)
    path = models.TextField(help_text="Ids of tenant, claim, item and attachment.")
    folder = models.GeneratedField(
        expression=Left("path", FOLDER_LENGTH), output_field=models.TextField(), db_persist=True
    )
    replaces = models.BooleanField(help_text="Whether something stood there, which goes aside.")
    size_bytes = models.BigIntegerField(null=True, help_text="Length of what is placed.")
    state = models.TextField(choices=IntentState, db_default=IntentState.OPEN)
    written_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)
    ended_by = models.TextField(choices=IntentEndedBy, null=True)
    failures = models.IntegerField(db_default=0, help_text="How often it could not be ended.")
    last_failure = models.TextField(null=True, help_text="The class of the last such error.")

    owner_may_insert = False
    journal_may_insert = True
    journal_may_select = True
    journal_may_update = ("state", "ended_at", "ended_by", "failures", "last_failure")

    class Meta:
        db_table = "staged_file_intents"
        verbose_name = "staged file"
        constraints = [
            models.CheckConstraint(name="staged_file_action_closed", condition=Q(action__in=Action.values)),
            models.CheckConstraint(
                name="staged_file_path_of_ids", condition=Q(path__regex=rf"^{UUID_TEXT}(/{UUID_TEXT}){{1,3}}$")
            ),
            models.CheckConstraint(
                name="staged_file_what_happens",
                condition=Q(action=Action.PLACE, size_bytes__isnull=False, size_bytes__gte=0)
                | Q(action=Action.REMOVE, size_bytes__isnull=True, replaces=True),
            ),
            models.CheckConstraint(
                name="staged_file_end",
                condition=Q(state=IntentState.OPEN, ended_at__isnull=True, ended_by__isnull=True)
                | Q(
                    state__in=(IntentState.KEPT, IntentState.UNDONE),
                    ended_at__isnull=False,
                    ended_by__isnull=False,
                    ended_by__in=IntentEndedBy.values,
                ),
            ),
            models.CheckConstraint(
                name="staged_file_failures",
                condition=Q(failures=0, last_failure__isnull=True) | Q(failures__gt=0, last_failure__isnull=False),
            ),
        ]
        indexes = [
            models.Index(name="staged_file_open", fields=["folder", "sequence"], condition=Q(state=IntentState.OPEN)),
            models.Index(name="staged_file_folder", fields=["folder", "sequence"]),
        ]
        triggers = [
            Guard(
                name="staged_file_one_at_a_time", when=pgtrigger.Before, operation=pgtrigger.Insert, func=ONE_AT_A_TIME
            ),
            refuse_when(
                name="staged_file_ended",
                operation=pgtrigger.Update,
                condition="OLD.state <> 'open'",
                message="This intent has ended; that never changes.",
            ),
            refuse_when(
                name="staged_file_fixed",
                operation=pgtrigger.Update,
                condition="(OLD.sequence, OLD.intent_id, OLD.transaction_id, OLD.marker_id, OLD.action, OLD.path,"
                " OLD.replaces, OLD.size_bytes, OLD.written_at) IS DISTINCT FROM (NEW.sequence, NEW.intent_id,"
                " NEW.transaction_id, NEW.marker_id, NEW.action, NEW.path, NEW.replaces, NEW.size_bytes,"
                " NEW.written_at) OR NEW.failures < OLD.failures",
                message="What an intent says is fixed when it is written.",
            ),
            *never_delete(name="staged_file", message="The journal of the tree is never deleted."),
        ]
