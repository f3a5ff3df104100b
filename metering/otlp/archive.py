"""The archive of the fanout sink: JSON lines, rotated, and on the disk before a request is answered (T10, T12).

Each process writes files of its own, so lines never mix. A line that a crash cut off can only be the last of its file,
because no file is ever continued: not after a restart, not after a write or an fsync that failed, since nobody knows
what such a call left behind, and not after somebody moved it away. A request whose lines were not all written is
answered 503 and comes again, so an event can have several lines; whoever counts goes by the key.
"""

import os
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

SUFFIX = ".jsonl"


class Damaged(Exception):
    """A file of the archive holds what no receiver wrote. Permanent: restore it from a copy."""


class Archive:
    """The files of this process in one directory. `append` may be called by several threads."""

    def __init__(self, *, directory: Path, rotate_bytes: int, rotate_seconds: float) -> None:
        self._directory = directory
        self._rotate_bytes = rotate_bytes
        self._rotate_seconds = rotate_seconds
        self._lock = threading.Lock()
        self._file: int | None = None
        self._path = directory
        self._size = 0
        self._until = 0.0

    def append(self, lines: Sequence[bytes]) -> None:
        """Write all lines and wait until the disk has them. Raises `OSError`; then any of them may be there or not."""
        data = b"".join(lines)
        if not data:
            return
        with self._lock:
            file = self._file
            if file is None or not self._continues(file):
                file = self._rotate()
            try:
                _write_all(file, data)
                os.fsync(file)
            except OSError:
                self._close()
                raise
            self._size += len(data)

    def close(self) -> None:
        """Close the present file; the next line begins another."""
        with self._lock:
            self._close()

    def _continues(self, file: int) -> bool:
        """Whether the present file is not full, not old, and still where it was made."""
        if self._size >= self._rotate_bytes or time.monotonic() >= self._until:
            return False
        try:
            return os.path.samestat(self._path.stat(), os.fstat(file))
        except OSError:
            return False

    def _rotate(self) -> int:
        self._close()
        name = f"otlp-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}"
        self._path = self._directory / name
        self._file = file = os.open(
            self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        self._size, self._until = 0, time.monotonic() + self._rotate_seconds
        try:
            _sync_directory(self._directory)
        except OSError:
            self._close()
            raise
        return file

    def _close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            with suppress(OSError):
                os.close(file)


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _sync_directory(directory: Path) -> None:
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def prepare(directory: Path) -> None:
    """Make the directory, and prove that files can be written there. Raises `OSError`."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    probe = directory / f".probe-{os.getpid()}-{secrets.token_hex(4)}"
    with probe.open("xb") as file:
        file.write(b"\n")
        os.fsync(file.fileno())
    probe.unlink()


def events(directory: Path) -> Iterator[dict[str, Any]]:
    """Every archived line, file by file in order of their names; what a crash cut off at a file's end is left out.

    Raises `Damaged` naming file and line for anything else that is no JSON object.
    """
    for path in sorted(directory.glob(f"*{SUFFIX}")):
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break
                try:
                    event = orjson.loads(line)
                except orjson.JSONDecodeError:
                    event = None
                if not isinstance(event, dict):
                    raise Damaged(f"{path}, line {number} is no archived event. Restore the file from a copy.")
                yield event
