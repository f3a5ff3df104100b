"""Change the stored tree inside a business transaction: after it the tree is as the transaction ended (C5).

    with receive(body) as incoming, hooks.business_transaction(using="attachments") as work:
        work.reserve(operation, quantity=incoming.size, at=now)      # refused: nothing was touched
        StagedFiles(work).place(path, incoming)
        …                                                            # the row

The new file stands in its place before the commit, so that a commit needs nothing of the disk; who reads meanwhile may
see it early. Each change is written into the journal first, through another connection.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from uuid import UUID

from django.db import connections, transaction
from uuid_utils.compat import uuid7

from attachments.files import journal, metrics, tree
from attachments.files.errors import PathInFlight
from attachments.files.finish import Found, finish, finish_found
from attachments.files.journal import Intent
from attachments.files.models import Action, IntentEndedBy, IntentState
from attachments.files.path import StoredPath
from attachments.files.place import place_of_files
from attachments.files.receive import Incoming, storage_errors
from billing.commercial.hooks import BusinessTransaction
from outbox.steps import reach

PATIENCE_SECONDS = 2.0
"""How long a change waits for another transaction that may be at work on the same path."""
NO_PATIENCE_SECONDS = 0.01
"""How long it waits for one that is at work elsewhere below the same claim."""


class _NothingThere(Exception):
    """There is nothing to remove."""


class StagedFiles:
    """The files of one scope of a business transaction: the outermost, or a savepoint in it.

    Every call raises `PathInFlight` while another transaction is changing the same path, one above or one below it,
    `StorageFailed` or `StorageFull` if the filesystem refuses, and database errors of the journal. A scope in which the
    disk refused rolls back, and everything is as it was.
    """

    def __init__(self, work: BusinessTransaction) -> None:
        self._work = work
        self._place = place_of_files()
        connections[journal.JOURNAL].close_if_unusable_or_obsolete()

    def place(self, path: StoredPath, incoming: Incoming) -> None:
        """Put a received file there; a file that stands there goes with the commit. Raises `AlreadyPlaced`."""
        received = incoming.take()
        intent_id = self._write_down(Action.PLACE, path, size=incoming.size)
        with self._held(intent_id) as intent:
            if intent.replaces:
                tree.set_aside(intent, self._place)
            tree.put(received, intent, self._place)
            incoming.placed()
        metrics.staged(Action.PLACE.value)

    def remove(self, path: StoredPath) -> bool:
        """Take away the file, or the folder and all below it. False if nothing is there."""
        try:
            intent_id = self._write_down(Action.REMOVE, path, size=None)
        except _NothingThere:
            return False
        with self._held(intent_id) as intent:
            tree.set_aside(intent, self._place)
        metrics.staged(Action.REMOVE.value)
        return True

    def _write_down(self, action: Action, path: StoredPath, *, size: int | None) -> UUID:
        """Commit the intent, after what others left open about the path was ended."""
        self._work.marker()
        reach("files.marked")
        until = time.monotonic() + PATIENCE_SECONDS
        while (intent_id := self._try_to_write(action, path, size=size)) is None:
            if not self._end_others(path, patience=until - time.monotonic()):
                raise PathInFlight(PathInFlight.__doc__)
        reach("files.journaled")
        return intent_id

    def _try_to_write(self, action: Action, path: StoredPath, *, size: int | None) -> UUID | None:
        """None while another intent about the path is open. What stands there is looked at when none can be."""
        marker, mine = self._work.marker(), self._work.transaction_id
        with journal.folder_locked(path.folder) as cursor:
            if journal.is_in_flight(cursor, path=path, transaction_id=mine):
                return None
            with storage_errors():
                replaces = tree.stands(path.below(self._place.root))
            if action is Action.REMOVE and not replaces:
                raise _NothingThere
            intent_id = uuid7()
            self._work.register(
                complete=partial(finish, intent_id, IntentState.KEPT, by=IntentEndedBy.COMPLETION),
                compensate=partial(finish, intent_id, IntentState.UNDONE, by=IntentEndedBy.COMPENSATION),
            )
            journal.write(
                cursor,
                intent_id,
                transaction_id=mine,
                marker_id=marker.subject_id,
                action=action,
                path=path,
                replaces=replaces,
                size=size,
            )
        return intent_id

    def _end_others(self, path: StoredPath, *, patience: float) -> bool:
        """End what other transactions left open below the same claim; wait only for those in the way.

        False if trying once more is in vain: the time is over, or what is in the way cannot be ended.
        """
        if patience <= NO_PATIENCE_SECONDS:
            return False
        opened = journal.open_below(path.folder)
        others = [intent for intent in opened if intent.transaction_id != self._work.transaction_id]

        def wait(intent: Intent) -> float:
            return patience if intent.path.overlaps(path) else NO_PATIENCE_SECONDS

        found = finish_found(others, by=IntentEndedBy.SUCCESSOR, patience=wait)
        return not any(
            found.get(intent.intent_id, Found.FAILED) is Found.FAILED for intent in opened if intent.path.overlaps(path)
        )

    @contextmanager
    def _held(self, intent_id: UUID) -> Iterator[Intent]:
        with _rolling_back_on_errors(), storage_errors(), journal.held(intent_id) as found:
            if found is None:
                # The transaction is lost: somebody decided against it meanwhile, and ended the intent.
                raise PathInFlight(PathInFlight.__doc__)
            yield found[1]


@contextmanager
def _rolling_back_on_errors() -> Iterator[None]:
    """After an error the scope can only roll back, also where its caller hides the error: half a change never stays."""
    try:
        yield
    except BaseException:
        transaction.set_rollback(True, using=journal.BUSINESS)
        raise
