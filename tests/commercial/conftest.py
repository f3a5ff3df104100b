"""A small business beside the commercial boundary: notes, in a table that exists while a module of these tests runs."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections

from billing.commercial.sweep import Swept, sweep
from tests.commercial.make import BUSINESS

CREATE = (
    "CREATE TABLE IF NOT EXISTS test_notes (name text PRIMARY KEY, body text NOT NULL,"
    " CONSTRAINT test_note_short CHECK (length(body) < 100))",
    "CREATE TABLE IF NOT EXISTS test_shelf (name text PRIMARY KEY REFERENCES test_notes DEFERRABLE INITIALLY DEFERRED)",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON test_notes, test_shelf TO attachments_owner",
    "GRANT SELECT ON test_notes, test_shelf TO attachments_read",
)


@pytest.fixture(scope="module")
def notes_table(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The business's own table in its own database."""
    with django_db_blocker.unblock():
        with connections["attachments.schema"].cursor() as cursor:
            for statement in CREATE:
                cursor.execute(statement)
        yield
        with connections["attachments.schema"].cursor() as cursor:
            cursor.execute("DROP TABLE test_shelf, test_notes")
        connections.close_all()


@pytest.fixture
def business(notes_table: None, database: None) -> None:
    """Real databases with the business's table."""


def swept_now() -> Swept:
    """One sweep over everything that is held."""
    from datetime import timedelta

    return sweep(business=BUSINESS, held_for=timedelta(0))
