"""A small business beside the stored tree: papers, in tables that exist while a module of these tests runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

CREATE = (
    "CREATE TABLE IF NOT EXISTS test_papers (path text PRIMARY KEY, size bigint NOT NULL, sha256 text NOT NULL)",
    "CREATE TABLE IF NOT EXISTS test_writes (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, size bigint NOT NULL)",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON test_papers, test_writes TO attachments_owner",
    "GRANT SELECT ON test_papers, test_writes TO attachments_read",
)


@pytest.fixture(scope="module")
def papers_table(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The business's own tables in its own database."""
    with django_db_blocker.unblock():
        with connections["attachments.schema"].cursor() as cursor:
            for statement in CREATE:
                cursor.execute(statement)
        yield
        with connections["attachments.schema"].cursor() as cursor:
            cursor.execute("DROP TABLE test_papers, test_writes")
        connections.close_all()


@pytest.fixture
def root(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stored tree of its own, also for child processes."""
    settings.ATTACHMENTS_ROOT = tmp_path / "stored"
    settings.ATTACHMENTS_INCOMING = tmp_path / "stored" / ".incoming"
    monkeypatch.setenv("ATTACHMENTS_ROOT", str(settings.ATTACHMENTS_ROOT))
    monkeypatch.setenv("ATTACHMENTS_INCOMING", str(settings.ATTACHMENTS_INCOMING))
    return tmp_path / "stored"


@pytest.fixture
def desk(papers_table: None, database: None, root: Path) -> Path:
    """Real databases with the business's tables, and an empty tree."""
    return root
