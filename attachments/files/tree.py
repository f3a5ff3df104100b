"""What happens on disk for one intent: aside, into place, back, gone. Each may be repeated after a kill at any point.

Every call is made by the holder of the intent's row. After each rename the directory is synced, so the next step never
outlasts a power cut that the one before did not.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from attachments.files.errors import TreeContradicts
from attachments.files.journal import Intent
from attachments.files.place import PRIVATE, Place
from outbox.steps import reach

ATTEMPTS = 100
"""How often a folder is made again that others remove because it is empty."""


def target_of(intent: Intent, place: Place) -> Path:
    """Where the intent's path is."""
    return intent.path.below(place.root)


def backup_of(intent: Intent, place: Path | Place) -> Path:
    """Where what stood there is kept: hidden, in the same directory."""
    root = place.root if isinstance(place, Place) else place
    return intent.path.below(root).with_name(intent.backup_name)


def stands(path: Path) -> bool:
    """Whether something is there. Raises `OSError` if that cannot be seen: not seen is not the same as not there."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def set_aside(intent: Intent, place: Place) -> None:
    """What stands there becomes the backup."""
    target = target_of(intent, place)
    target.rename(backup_of(intent, place))
    sync_directory(target.parent)
    reach("files.set_aside")


def put(received: Path, intent: Intent, place: Place) -> None:
    """A received file comes into its place, where nothing stands."""
    target = target_of(intent, place)
    for attempt in range(ATTEMPTS):
        _make_folders(target.parent)
        try:
            received.rename(target)
            break
        except FileNotFoundError:
            if attempt == ATTEMPTS - 1 or not received.exists():
                raise
    sync_directory(target.parent)
    sync_directory(received.parent)
    reach("files.placed")


def drop(intent: Intent, place: Place) -> None:
    """The change stays: the backup goes, and with it folders that became empty."""
    if not intent.replaces:
        return
    backup = backup_of(intent, place)
    if backup.is_dir() and not backup.is_symlink():
        shutil.rmtree(backup)
    else:
        backup.unlink(missing_ok=True)
    _remove_empty(backup.parent, place.root)
    reach("files.dropped")


def undo(intent: Intent, place: Place) -> None:
    """The change is taken back: what stood there stands there again, and nothing else. Raises `TreeContradicts`."""
    target, backup = target_of(intent, place), backup_of(intent, place)
    if not intent.replaces:
        with suppress(FileNotFoundError, NotADirectoryError):
            target.unlink()
    elif stands(backup):
        if backup.is_dir() and target.is_file():
            target.unlink()
        backup.rename(target)
    elif not stands(target):
        raise TreeContradicts(TreeContradicts.__doc__)
    if target.parent.is_dir():
        sync_directory(target.parent)
    reach("files.restored")
    _remove_empty(target.parent, place.root)


def sync_directory(path: Path) -> None:
    """Make the names in a directory outlast a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_folders(folder: Path) -> None:
    if folder.is_dir():
        return
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        with suppress(FileNotFoundError):  # the one above was removed because it was empty: the caller tries again
            one.mkdir(mode=PRIVATE, exist_ok=True)
            sync_directory(one.parent)


def _remove_empty(folder: Path, root: Path) -> None:
    """Remove the folder and those above it as far as nothing is in them."""
    while folder != root:
        try:
            folder.rmdir()
        except FileNotFoundError:
            pass
        except OSError:
            return
        folder = folder.parent
