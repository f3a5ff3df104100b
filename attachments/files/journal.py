"""The journal's statements, on a connection of its own: what is written here is committed at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import psycopg
from django.db import transaction

from attachments.files.errors import PathInFlight
from attachments.files.models import Action, IntentEndedBy, IntentState
from attachments.files.path import StoredPath
from outbox.raw import Cursor, raw_cursor

BUSINESS: Final = "attachments"
"""The alias of the transactions that files follow."""
JOURNAL: Final = "attachments.journal"
"""Its alias: the database of the owner, a login of its own."""

PATIENCE_SECONDS = 10.0
"""How long a change waits for a sweep, or a sweep's like, that is ending the same intent."""

COLUMNS = "intent_id, transaction_id, marker_id, action, path, replaces, sequence"
LOCK_FOLDER = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
OVERLAPPING = """
SELECT EXISTS (
    SELECT FROM staged_file_intents
     WHERE state = 'open' AND folder = %(folder)s AND (transaction_id <> %(transaction)s OR failures > 0)
       AND (starts_with(path || '/', %(path)s || '/') OR starts_with(%(path)s || '/', path || '/')))
"""
WRITE = """
INSERT INTO staged_file_intents (intent_id, transaction_id, marker_id, action, path, replaces, size_bytes)
VALUES (%s, %s, %s, %s, %s, %s, %s)
"""
LOCK_TIMEOUT = "SELECT set_config('lock_timeout', %s, true)"
HOLD = f"SELECT {COLUMNS} FROM staged_file_intents WHERE intent_id = %s AND state = 'open' FOR UPDATE"
OPEN_BELOW = f"""
SELECT {COLUMNS} FROM staged_file_intents WHERE state = 'open' AND folder = %s ORDER BY sequence DESC
"""
OPEN_FOLDERS = """
SELECT DISTINCT folder FROM staged_file_intents WHERE state = 'open' AND folder > %s ORDER BY folder LIMIT %s
"""
LATER = """
SELECT coalesce(bool_or(state = 'kept'), false), coalesce(bool_or(state = 'open'), false),
       coalesce(bool_or(state = 'open' AND failures > 0), false)
  FROM staged_file_intents
 WHERE folder = %(folder)s AND sequence > %(sequence)s AND state <> 'undone'
   AND (starts_with(path || '/', %(path)s || '/') OR starts_with(%(path)s || '/', path || '/'))
"""
END = """
UPDATE staged_file_intents SET state = %s, ended_by = %s, ended_at = now() WHERE intent_id = %s AND state = 'open'
"""
FAIL = """
UPDATE staged_file_intents SET failures = failures + 1, last_failure = %s WHERE intent_id = %s AND state = 'open'
"""


@dataclass(frozen=True, slots=True)
class Intent:
    """One open row of the journal."""

    intent_id: UUID
    transaction_id: UUID
    marker_id: UUID
    action: Action
    path: StoredPath
    replaces: bool
    sequence: int

    @property
    def backup_name(self) -> str:
        """What the old file or folder is called while it stands aside, beside its path."""
        return f".{self.path.ids[-1]}.{self.intent_id}.old"


def _intent(row: tuple[UUID, UUID, UUID, str, str, bool, int]) -> Intent:
    intent_id, transaction_id, marker_id, action, path, replaces, sequence = row
    return Intent(intent_id, transaction_id, marker_id, Action(action), StoredPath.parse(path), replaces, sequence)


@contextmanager
def folder_locked(folder: str) -> Iterator[Cursor]:
    """A transaction of the journal in which nobody else writes an intent below this folder."""
    with transaction.atomic(using=JOURNAL, durable=True), raw_cursor(JOURNAL) as cursor:
        cursor.execute(LOCK_FOLDER, (folder,))
        yield cursor


def is_in_flight(cursor: Cursor, *, path: StoredPath, transaction_id: UUID) -> bool:
    """Whether an intent of another transaction, or one that could not be ended, is open about this path."""
    cursor.execute(OVERLAPPING, {"folder": path.folder, "path": path.text, "transaction": transaction_id})
    return bool(cursor.fetchone() == (True,))


def write(
    cursor: Cursor,
    intent_id: UUID,
    *,
    transaction_id: UUID,
    marker_id: UUID,
    action: Action,
    path: StoredPath,
    replaces: bool,
    size: int | None,
) -> None:
    """Write one intent inside `folder_locked`."""
    cursor.execute(WRITE, (intent_id, transaction_id, marker_id, action.value, path.text, replaces, size))


@contextmanager
def held(intent_id: UUID, *, patience: float = PATIENCE_SECONDS) -> Iterator[tuple[Cursor, Intent] | None]:
    """Hold an open intent: nobody else touches the disk for it meanwhile. None if it is not open any more.

    Raises `PathInFlight` if another process holds it for longer than `patience` seconds.
    """
    with transaction.atomic(using=JOURNAL, durable=True), raw_cursor(JOURNAL) as cursor:
        cursor.execute(LOCK_TIMEOUT, (f"{patience * 1000:.0f}ms",))
        try:
            cursor.execute(HOLD, (intent_id,))
        except psycopg.errors.LockNotAvailable as error:
            raise PathInFlight(PathInFlight.__doc__) from error
        row = cursor.fetchone()
        yield (cursor, _intent(row)) if row else None


@dataclass(frozen=True, slots=True)
class Later:
    """What there is of later changes of a path, or of one above or below it, but for those taken back."""

    kept: bool
    open: bool
    failing: bool
    """An open one could not be ended."""


def later_changes(cursor: Cursor, intent: Intent) -> Later:
    """Which later changes of the path of a held intent there are."""
    cursor.execute(LATER, {"folder": intent.path.folder, "path": intent.path.text, "sequence": intent.sequence})
    return Later(*(cursor.fetchone() or ()))


def end(cursor: Cursor, intent: Intent, state: IntentState, *, by: IntentEndedBy) -> None:
    """Say how a held intent ended."""
    cursor.execute(END, (state.value, by.value, intent.intent_id))


def failed(intent_id: UUID, *, error: BaseException) -> None:
    """Count that an intent could not be ended."""
    with raw_cursor(JOURNAL) as cursor:
        cursor.execute(FAIL, (type(error).__name__, intent_id))


def open_below(folder: str) -> list[Intent]:
    """The open intents below one folder, latest first: the order in which they can be taken back."""
    with raw_cursor(JOURNAL) as cursor:
        cursor.execute(OPEN_BELOW, (folder,))
        return [_intent(row) for row in cursor.fetchall()]


def open_folders(*, after: str, limit: int) -> list[str]:
    """Folders with open intents, in their order, after this one."""
    with raw_cursor(JOURNAL) as cursor:
        cursor.execute(OPEN_FOLDERS, (after, limit))
        return [folder for (folder,) in cursor.fetchall()]
