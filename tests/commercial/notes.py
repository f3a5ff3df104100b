"""A small business on the hooks: a note is a row and a file, and each note written is one event.

The file is written into place before the commit, as an upload would be: the old content is kept beside it, a commit
drops what was kept, a rollback puts it back.
"""

import uuid
from datetime import datetime
from pathlib import Path

from django.db import connections

from billing.commercial import hooks
from billing.commercial.hooks import BusinessTransaction, Permit
from tests.commercial.make import AT, BUSINESS, Contract, operation

UPSERT = "INSERT INTO test_notes (name, body) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET body = excluded.body"


class Interrupted(Exception):
    """The business changed its mind."""


def write_note(  # what a request would carry
    contract: Contract | None,
    name: str,
    body: str,
    *,
    place: Path | None = None,
    fails: bool = False,
    request: str | None = None,
    at: datetime = AT,
) -> Permit:
    """Write one note in a business transaction of its own, or in the one that is open."""
    with hooks.business_transaction(using=BUSINESS) as work:
        permit = work.reserve(operation(contract, name, request or uuid.uuid4().hex), quantity=1, at=at)
        if place is not None:
            put_file(work, place / name, body)
        store(name, body)
        if fails:
            raise Interrupted(name)
    return permit


def store(name: str, body: str) -> None:
    """The row of a note."""
    with connections[BUSINESS].cursor() as cursor:
        cursor.execute(UPSERT, [name, body])


def put_file(work: BusinessTransaction, path: Path, body: str) -> None:
    """Write the file of a note so that it follows the transaction."""
    kept = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    if path.exists():
        work.register(complete=kept.unlink, compensate=lambda: kept.replace(path))
        path.rename(kept)
    else:
        work.register(compensate=path.unlink)
    path.write_text(body)


def notes() -> dict[str, str]:
    """Every note there is."""
    with connections["attachments.read"].cursor() as cursor:
        cursor.execute("SELECT name, body FROM test_notes ORDER BY name")
        return dict(cursor.fetchall())
