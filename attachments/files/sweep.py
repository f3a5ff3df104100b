"""End what killed processes left in the stored tree, and remove received files that nobody holds (C9, F4).

The journal says what may have begun, the marker whether it committed, the kernel's lock whether a received file still
has a process. Nothing is concluded from names or ages. A transaction that is still at work holds its marker's key; the
sweep waits a moment for it, leaves it alone, and comes back. Two sweeps at once are harmless.
"""

from collections import Counter
from dataclasses import dataclass

from django.db import connections

from attachments.files import journal, metrics
from attachments.files.finish import finish_found
from attachments.files.locked_file import remove_dead
from attachments.files.models import IntentEndedBy
from attachments.files.place import place_of_files
from attachments.files.receive import storage_errors

PAGE = 200
"""Folders looked at together."""
PATIENCE_SECONDS = 0.5
"""How long a sweep waits for a transaction that may still be at work."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep did. `live` are still at work, `failed` could not be ended and are tried again."""

    kept: int = 0
    undone: int = 0
    live: int = 0
    failed: int = 0
    incoming: int = 0


def sweep() -> Swept:
    """End every open intent that is not at work, folder by folder, latest first.

    Raises `DifferentFilesystems`, `StorageFailed`, and a database error if the journal cannot be reached.
    """
    place = place_of_files()
    connections[journal.JOURNAL].close_if_unusable_or_obsolete()
    with storage_errors():
        removed = remove_dead(place.incoming)
    metrics.incoming_removed(removed)
    done: Counter[str] = Counter()
    after = ""
    while folders := journal.open_folders(after=after, limit=PAGE):
        after = folders[-1]
        for folder in folders:
            outcomes = finish_found(
                journal.open_below(folder), by=IntentEndedBy.SWEEP, patience=lambda _: PATIENCE_SECONDS
            )
            done.update(outcome.value for outcome in outcomes.values())
    for outcome, number in done.items():
        for _ in range(number):
            metrics.swept(outcome)
    metrics.sweep_finished()
    return Swept(**done, incoming=removed)
