"""Where files are, and the proof that a received file can be renamed into its place (F5)."""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import structlog
from django.conf import settings

from attachments.files.errors import DifferentFilesystems, StorageFailed
from attachments.files.locked_file import create_locked

log = structlog.get_logger("attachments.files")

PRIVATE = 0o700
"""Only the user that the processes run as reads what was uploaded."""


@dataclass(frozen=True, slots=True)
class Place:
    """The root of the stored tree, and where files are received."""

    root: Path
    incoming: Path


def place_of_files() -> Place:
    """The configured place, made and tried once per process. Raises `DifferentFilesystems`, `StorageFailed`."""
    return _tried(settings.ATTACHMENTS_ROOT, settings.ATTACHMENTS_INCOMING)


def refuse_to_start() -> None:
    """For a process that starts: raises `DifferentFilesystems`. What may pass by itself is logged, and tried at use."""
    try:
        place_of_files()
    except StorageFailed as error:
        log.error("stored_files_unusable", error=str(error))


@cache
def _tried(root: Path, incoming: Path) -> Place:
    try:
        for folder in (root, incoming):
            folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        refuse_different_filesystems(root=root, incoming=incoming)
        _rename_once(root=root, incoming=incoming)
    except OSError as error:
        raise StorageFailed(f"{root}: {error.strerror}. {StorageFailed.__doc__}") from error
    return Place(root, incoming)


def refuse_different_filesystems(*, root: Path, incoming: Path) -> None:
    """Compare the devices of both, or of what exists above them. Raises `DifferentFilesystems`."""
    if existing(root).stat().st_dev != existing(incoming).stat().st_dev:
        raise DifferentFilesystems(f"{root}, {incoming}: {DifferentFilesystems.__doc__}")


def existing(path: Path) -> Path:
    """The path itself, or the nearest directory above it that exists."""
    return next(one for one in (path, *path.parents) if one.exists())


def _rename_once(*, root: Path, incoming: Path) -> None:
    """Two mounts of one device have the same number and refuse a rename all the same."""
    probe, descriptor = create_locked(incoming)
    target = root / f".probe-{probe.name}"
    try:
        os.rename(probe, target)  # noqa: PTH104  # the call itself is what is tried
    except OSError as error:
        raise DifferentFilesystems(f"{root}, {incoming}: {DifferentFilesystems.__doc__}") from error
    finally:
        os.close(descriptor)
        probe.unlink(missing_ok=True)
        target.unlink(missing_ok=True)
