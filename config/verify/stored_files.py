"""The stored tree and its journal: what was kept stands there with its length, and nothing else does (C5, C9).

The tree is no database and has no snapshot. So whatever looks wrong is looked at again, after a new snapshot of the
journal: a change that was begun, ended or taken back meanwhile explains it. The tree has to be where this runs.
"""

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from django.conf import settings

from config.owners import owner_named
from config.verify.check import Check, Row, Tally, snapshots

OWNER = owner_named("attachments")
UUID_TEXT = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
STORED = re.compile(rf"{UUID_TEXT}(?:/{UUID_TEXT}){{1,3}}")
BACKUP = re.compile(rf"\.{UUID_TEXT}\.({UUID_TEXT})\.old")
BATCH_FILES = 1_000
"""Files of the tree that are looked up together."""

STANDING = """
SELECT p.path, p.size_bytes, p.sequence
  FROM (SELECT DISTINCT ON (path) path, folder, sequence, action, size_bytes
          FROM staged_file_intents WHERE state = 'kept' {which} ORDER BY path, sequence DESC) p
 WHERE p.action = 'place' AND NOT EXISTS (
       SELECT FROM staged_file_intents r
        WHERE r.folder = p.folder AND starts_with(p.path || '/', r.path || '/')
          AND (r.state = 'open' OR r.state = 'kept' AND r.action = 'remove' AND r.sequence > p.sequence))
"""
ALL_STANDING = STANDING.format(which="")
THESE_STANDING = STANDING.format(which="AND path = ANY (%(paths)s)")
STIRRED = """
SELECT max(sequence), count(*) FILTER (WHERE state = 'open') FROM staged_file_intents WHERE folder = left(%(path)s, 73)
"""
OPEN = """
SELECT intent_id::text, path FROM staged_file_intents
 WHERE state = 'open' AND (folder = ANY (%(folders)s) OR intent_id = ANY (%(backups)s::uuid[]))
"""


def kept_files_stand() -> Tally:
    """Look for every file that the journal says was kept."""
    tally = Tally()
    suspects: list[Row] = []
    with snapshots(OWNER.read_alias) as (journal,):
        for batch in journal.stream(ALL_STANDING):
            tally.examined += len(batch)
            suspects += [row for row in batch if _problem(row)]
    for row in suspects:
        if problem := _problem_at_rest(row):
            tally.found(OWNER.name, row[0], problem)
    return tally


def _problem_at_rest(row: Row) -> str | None:
    """The problem, if nothing below the same claim was open or begun while it was looked at again."""
    before = _stir(row)
    problem = _problem(row)
    after = _stir(row)
    return problem if before == after and before[0] and not before[2] else None


def _stir(row: Row) -> tuple[bool, int, int]:
    """Whether the row still stands, the last change below its claim, and how many are open there."""
    with snapshots(OWNER.read_alias) as (journal,):
        stands = row in journal.rows(THESE_STANDING, {"paths": [row[0]]})
        last, opened = journal.one(STIRRED, {"path": row[0]})
    return stands, last, opened


def _problem(row: Row) -> str | None:
    path, size, _ = row
    try:
        found = (settings.ATTACHMENTS_ROOT / path).lstat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return "the file is not there"
    return None if found == size else f"it has {found} bytes instead of {size}"


def nothing_else_stands() -> Tally:
    """Look up every file of the tree in the journal."""
    tally = Tally()
    files = _files(settings.ATTACHMENTS_ROOT)
    while batch := list(islice(files, BATCH_FILES)):
        tally.examined += len(batch)
        unknown = [path for path in _unknown(batch) if os.path.lexists(settings.ATTACHMENTS_ROOT / path)]
        for path in _unknown(unknown):
            if os.path.lexists(settings.ATTACHMENTS_ROOT / path):
                tally.found(OWNER.name, path, "nothing that was kept and nothing that is open explains this file")
    return tally


def _unknown(paths: list[str]) -> list[str]:
    """Those that are no kept file, no file of an open change, and not within the backup of one."""
    stored = [path for path in paths if STORED.fullmatch(path)]
    backups = {path: found.group(1) for path in paths if (found := BACKUP.search(path))}
    with snapshots(OWNER.read_alias) as (journal,):
        standing = {row[0] for row in journal.rows(THESE_STANDING, {"paths": stored})}
        wanted = {"folders": list({path[:73] for path in stored}), "backups": list(set(backups.values()))}
        opened = journal.rows(OPEN, wanted)
    open_ids, open_paths = {row[0] for row in opened}, {row[1] for row in opened}

    def is_open(path: str) -> bool:
        parts = path.split("/")
        return any("/".join(parts[:length]) in open_paths for length in range(2, len(parts) + 1))

    known = standing | {path for path, intent in backups.items() if intent in open_ids}
    return [path for path in paths if path not in known and not is_open(path)]


def _files(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        where = Path(folder)
        folders[:] = [name for name in folders if where / name != settings.ATTACHMENTS_INCOMING]
        for name in files:
            path = where / name
            if not (where == root and name.startswith(".probe-")):
                yield path.relative_to(root).as_posix()


CHECKS = (
    Check(
        "stored_file",
        "Every stored file whose placing was kept, and whose removal was not, stands there with its length.",
        kept_files_stand,
    ),
    Check(
        "stored_stray",
        "Every file of the stored tree was kept, or belongs to a change that is open.",
        nothing_else_stands,
    ),
)
