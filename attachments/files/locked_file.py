"""Files that a living process holds by a lock, which the kernel drops when the process ends, however it ends.

So whoever gets the lock knows that nobody is at work with the file. The weakness: the lock must be one that all
machines see, so a root that several share needs a filesystem whose `flock` is (NFS from version 4 on).
"""

import fcntl
import os
from pathlib import Path
from uuid import uuid4


def create_locked(folder: Path) -> tuple[Path, int]:
    """A new file of an id of its own, and its descriptor, which holds it; again if a sweep was faster than the lock."""
    while True:
        path = folder / str(uuid4())
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_nlink:
                return path, descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def remove_dead(folder: Path) -> int:
    """Remove the files that no living process holds; how many."""
    removed = 0
    for path in folder.iterdir():
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
            removed += 1
        except BlockingIOError:
            continue
        finally:
            os.close(descriptor)
    return removed
