"""A small business on staged files: a paper is a row and a file, and each write is counted in bytes."""

import hashlib
import io
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid5

from django.db import connections

from attachments.files.path import StoredPath
from attachments.files.receive import receive
from attachments.files.stage import StagedFiles
from billing.commercial import hooks
from billing.commercial.hooks import Operation
from outbox.steps import reach
from tests.commercial.make import AT

ALIAS = "attachments"
NAMESPACE = UUID("6f0e8a52-5d0c-4b1e-9f0e-2f4f6f1f8a11")
UPSERT = (
    "INSERT INTO test_papers (path, size, sha256) VALUES (%s, %s, %s)"
    " ON CONFLICT (path) DO UPDATE SET size = excluded.size, sha256 = excluded.sha256"
)


class Interrupted(Exception):
    """The business changed its mind."""


def path_of(name: str, *, item: str = "item", claim: str = "claim", tenant: str = "tenant") -> StoredPath:
    """Where a paper is, by names that only tests use."""
    return StoredPath.of(*(uuid5(NAMESPACE, one) for one in (tenant, claim, item, name)))


def write(
    name: str, body: bytes, *, item: str = "item", claim: str = "claim", tenant_id: str = "",
    request: str | None = None, then: Callable[[], None] | None = None,
) -> None:  # fmt: skip
    """Upload or replace one paper, in a transaction of its own or in the one that is open."""
    path = path_of(name, item=item, claim=claim)
    with receive(io.BytesIO(body)) as incoming, hooks.business_transaction(using=ALIAS) as work:
        if tenant_id:
            work.reserve(operation(tenant_id, request or uuid.uuid4().hex), quantity=incoming.size, at=AT)
        StagedFiles(work).place(path, incoming)
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(UPSERT, [path.text, incoming.size, incoming.sha256])
            cursor.execute("INSERT INTO test_writes (size) VALUES (%s)", [incoming.size])
        reach("papers.row")
        if then is not None:
            then()


def operation(tenant_id: str, request: str) -> Operation:
    """One metered write."""
    return Operation(
        tenant_kind="organization",
        tenant_id=tenant_id,
        tool="storage",
        dimension="attachment.upload",
        quantity_basis="bytes",
        identity=(request,),
    )


def remove(path: StoredPath, *, then: Callable[[], None] | None = None) -> bool:
    """Delete a paper, or all papers of an item or a claim.

    No row is locked here, so where nothing is there to remove, nothing keeps another upload from coming meanwhile.
    """
    with hooks.business_transaction(using=ALIAS) as work:
        removed = StagedFiles(work).remove(path)
        if removed:
            with connections[ALIAS].cursor() as cursor:
                cursor.execute("DELETE FROM test_papers WHERE starts_with(path || '/', %s || '/')", [path.text])
        reach("papers.row")
        if then is not None:
            then()
    return removed


def fail() -> None:
    """What `then` may be."""
    raise Interrupted


def tree(root: Path) -> dict[str, bytes]:
    """Every file there is below the root, hidden ones too, by its path; empty folders by their path with a slash."""
    found: dict[str, bytes] = {}
    for folder, folders, files in os.walk(root):
        where = Path(folder)
        for name in files:
            found[str((where / name).relative_to(root))] = (where / name).read_bytes()
        if not folders and not files and where.name != ".incoming" and where != root:
            found[f"{where.relative_to(root)}/"] = b""
    return found


def of_claim(claim: str, root: Path) -> dict[str, bytes]:
    """What `tree` finds below one claim."""
    folder = path_of("", claim=claim).folder
    return {path: body for path, body in tree(root).items() if path.startswith(folder)}


def stored(claim: str = "claim", /, **papers: bytes) -> dict[str, bytes]:
    """What is found if exactly these papers are there."""
    return {path_of(name, claim=claim).text: body for name, body in papers.items()}


def rows() -> dict[str, tuple[int, str]]:
    """Every paper that the database knows: size and digest by path."""
    with connections["attachments.read"].cursor() as cursor:
        cursor.execute("SELECT path, size, sha256 FROM test_papers")
        return {path: (size, digest) for path, size, digest in cursor.fetchall()}


def on_disk(root: Path) -> dict[str, tuple[int, str]]:
    """Every file there is: size and digest by path, as `rows` says it."""
    return {path: (len(body), hashlib.sha256(body).hexdigest()) for path, body in tree(root).items()}


def agrees(root: Path) -> bool:
    """Whether database and tree hold the same, byte for byte."""
    return on_disk(root) == rows()


def intents() -> list[tuple[str, str, str | None]]:
    """Action, state and who ended it, in order."""
    with connections["attachments.read"].cursor() as cursor:
        cursor.execute("SELECT action, state, ended_by FROM staged_file_intents ORDER BY sequence")
        return list(cursor.fetchall())
