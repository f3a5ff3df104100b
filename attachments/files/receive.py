"""Receive a file beside the stored tree: streamed, hashed, on disk for good, and gone again unless it is placed."""

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol

from django.conf import settings

from attachments.files.errors import AlreadyPlaced, StorageFailed, StorageFull, TooLarge
from attachments.files.locked_file import create_locked
from attachments.files.place import place_of_files
from outbox.steps import reach

CHUNK_BYTES = 256 * 1024
"""Read, hashed and written at once; all of the file that is ever in memory."""
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Stream(Protocol):
    """A body: an uploaded file, a request, an open file."""

    def read(self, size: int, /) -> bytes: ...


class Incoming:
    """One received file that is not placed yet. Leaving its `with` removes it, unless it was placed.

    `write` as often as there is something, then `finish`; `receive` does both. `size` is in bytes, `sha256` lower-case
    hex, both of what was written.
    """

    def __init__(self, *, limit: int | None = None) -> None:
        self._limit = settings.ATTACHMENTS_LARGEST_BYTES if limit is None else limit
        self._hash = hashlib.sha256()
        self.size = 0
        self._placed = False
        with storage_errors():
            self.path, self._descriptor = create_locked(place_of_files().incoming)

    @property
    def sha256(self) -> str:
        """The digest of what was written so far."""
        return self._hash.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Add to the file. Raises `TooLarge`, `StorageFull`, `StorageFailed`."""
        self.size += len(chunk)
        if self.size > self._limit:
            raise TooLarge(f"More than {self._limit} bytes. {TooLarge.__doc__}")
        self._hash.update(chunk)
        with storage_errors():
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    def finish(self) -> None:
        """Make what was written outlast a power cut. Raises `StorageFull`, `StorageFailed`."""
        with storage_errors():
            os.fsync(self._descriptor)
        reach("files.received")

    def take(self) -> Path:
        """The file, for the one that places it. Raises `AlreadyPlaced`."""
        if self._placed:
            raise AlreadyPlaced(AlreadyPlaced.__doc__)
        return self.path

    def placed(self) -> None:
        """It stands in the tree now."""
        self._placed = True

    def discard(self) -> None:
        """Remove it unless it was placed; harmless when repeated."""
        if self._descriptor < 0:
            return
        if not self._placed:
            with suppress(OSError):  # what cannot be removed now is unlocked, and the sweep removes it
                self.path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = -1

    def __enter__(self) -> "Incoming":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            self.discard()


def receive(stream: Stream, *, limit: int | None = None) -> Incoming:
    """Write all of `stream` into a file beside the stored tree; use it as a context manager.

    `limit` is in bytes, ATTACHMENTS_LARGEST_BYTES if it is left out. Raises `TooLarge`, `StorageFull`, `StorageFailed`,
    and what the stream raises; nothing is left then.
    """
    incoming = Incoming(limit=limit)
    try:
        while chunk := stream.read(CHUNK_BYTES):
            incoming.write(chunk)
        incoming.finish()
    except BaseException:
        incoming.discard()
        raise
    return incoming


@contextmanager
def storage_errors() -> Iterator[None]:
    """Translate what the filesystem says, by its number."""
    try:
        yield
    except OSError as error:
        cause = StorageFull if error.errno in NO_ROOM else StorageFailed
        raise cause(f"{os.strerror(error.errno or 0)}. {cause.__doc__}") from error
