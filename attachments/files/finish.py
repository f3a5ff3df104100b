"""End an open intent as its transaction ended: drop the backup, or put it back (C5, C9).

The journal and the marker decide, and nothing else. What cannot be ended now is logged and counted, keeps its backup
and its row, and is tried again by the next sweep or by the next change of that path.
"""

from collections.abc import Callable
from enum import StrEnum
from uuid import UUID

import structlog

from attachments.files import journal, metrics, tree
from attachments.files.errors import FilesError, NotRestored, Overtaken, PathInFlight
from attachments.files.journal import JOURNAL, Intent
from attachments.files.models import IntentEndedBy, IntentState
from attachments.files.path import StoredPath
from attachments.files.place import place_of_files
from billing.commercial import hooks
from outbox.steps import reach

log = structlog.get_logger("attachments.files")


class Found(StrEnum):
    """What became of an intent that somebody found open."""

    KEPT = "kept"
    """Its transaction committed; the backup is gone."""
    UNDONE = "undone"
    """Its transaction did not commit; the tree is as it was."""
    LIVE = "live"
    """Its transaction is still at work, a process is with its files, or a later change of the path has to end first."""
    FAILED = "failed"
    """It could not be ended; tried again later."""


def finish(
    intent_id: UUID, state: IntentState, *, by: IntentEndedBy, patience: float = journal.PATIENCE_SECONDS
) -> None:
    """End this intent, if it is still open.

    Raises `NotRestored`, `PathInFlight` while another process is at work with it or a later change of the path is open,
    or a database error of the journal.
    """
    place = place_of_files()
    try:
        with journal.held(intent_id, patience=patience) as found:
            if found is None:
                return
            cursor, intent = found
            _ensure_turn(state, journal.later_changes(cursor, intent))
            (tree.drop if state is IntentState.KEPT else tree.undo)(intent, place)
            journal.end(cursor, intent, state, by=by)
        reach("files.ended")
    except PathInFlight:
        raise
    except (OSError, FilesError) as error:
        metrics.not_ended(state.value)
        log.error(
            "staged_file_not_ended",
            intent_id=str(intent_id),
            wanted=state.value,
            error_class=type(error).__name__,
            error_number=getattr(error, "errno", None),
        )
        journal.failed(intent_id, error=error)
        raise error if isinstance(error, NotRestored) else NotRestored(NotRestored.__doc__) from error
    metrics.ended(outcome=state.value, source=by.value)


def _ensure_turn(state: IntentState, later: journal.Later) -> None:
    """What is taken back waits for what is open after it, and never comes back over what was kept.

    What is kept waits only for what could not be taken back: the backup may lie in that one's.
    """
    if state is IntentState.UNDONE and later.kept:
        raise Overtaken(Overtaken.__doc__)
    if later.failing or (state is IntentState.UNDONE and later.open):
        raise PathInFlight(PathInFlight.__doc__)


def finish_found(intents: list[Intent], *, by: IntentEndedBy, patience: Callable[[Intent], float]) -> dict[UUID, Found]:
    """Ask the marker of each and end it, latest first, as they are given.

    What is live or fails keeps only those from their turn that were before it on the same path. `patience` says for how
    many seconds a transaction that may be at work is waited for. Raises a database error.
    """
    outcomes: dict[UUID, Found] = {}
    decisions: dict[UUID, hooks.Decision] = {}
    waiting: list[StoredPath] = []
    for intent in intents:
        if any(intent.path.overlaps(path) for path in waiting):
            outcomes[intent.intent_id] = Found.LIVE
            continue
        marker, wait = intent.marker_id, patience(intent)
        if marker not in decisions:
            decisions[marker] = hooks.decide(hooks.MarkerKey.of_work(marker), using=JOURNAL, patience=wait)
        found = _finish_decided(intent, decisions[marker], by=by, patience=wait)
        outcomes[intent.intent_id] = found
        if found in {Found.LIVE, Found.FAILED}:
            waiting.append(intent.path)
    return outcomes


def _finish_decided(intent: Intent, decision: hooks.Decision, *, by: IntentEndedBy, patience: float) -> Found:
    if decision is hooks.Decision.LIVE:
        return Found.LIVE
    state = IntentState.KEPT if decision is hooks.Decision.COMMITTED else IntentState.UNDONE
    try:
        finish(intent.intent_id, state, by=by, patience=patience)
    except PathInFlight:
        return Found.LIVE
    except NotRestored:
        return Found.FAILED
    return Found(state.value)
