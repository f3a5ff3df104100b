"""Secrets as files: `<OTLP_SECRET_DIR>/<cluster id>/PRIMARY_TOKEN`, mode 0600 in directories of mode 0700.

For one machine, or a volume that the machine's users cannot read. A reader sees whole files only.
"""

import os
import stat
from pathlib import Path

from django.conf import settings

from config.private_file import write_private
from metering.clusters.secret_store.store import SecretStoreFailed, Slot

OTHERS = stat.S_IRWXG | stat.S_IRWXO
LONGEST_BYTES = 4096


class FileStore:
    """The default store."""

    def __init__(self) -> None:
        self._root = Path(settings.OTLP_SECRET_DIR)

    def read(self, *, cluster_id: int, slot: Slot) -> str | None:
        try:
            with self._path(cluster_id, slot).open("rb") as file:
                if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & OTHERS:
                    raise SecretStoreFailed(f"{file.name} can be read by others. Take that away: chmod 600.")
                return file.read(LONGEST_BYTES).decode("ascii").strip() or None
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise SecretStoreFailed(
                f"{slot} of cluster {cluster_id} cannot be read: {type(error).__name__}."
            ) from error

    def write(self, *, cluster_id: int, slot: Slot, secret: str) -> None:
        path = self._path(cluster_id, slot)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            for directory in (self._root, path.parent):
                directory.chmod(0o700)
            write_private(path, secret + "\n")
            for place in (path, path.parent, self._root):
                _sync(place)
        except OSError as error:
            raise SecretStoreFailed(
                f"{slot} of cluster {cluster_id} cannot be written: {error.strerror or type(error).__name__}."
            ) from error

    def _path(self, cluster_id: int, slot: Slot) -> Path:
        return self._root / str(int(cluster_id)) / slot.value


def _sync(path: Path) -> None:
    """What was written there survives a power cut."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
