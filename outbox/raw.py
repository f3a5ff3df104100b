"""psycopg's own cursor on Django's connection, for hot paths (house style: hot paths are SQL in named statements).

Django's cursor writes the parameters into the text, so the server parses and plans each statement anew. This one binds
them at the server, where a statement that repeats is prepared once; it takes part in Django's transactions as well.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connections

Cursor = psycopg.Cursor[tuple[Any, ...]]


@contextmanager
def raw_cursor(alias: str) -> Iterator[Cursor]:
    """A cursor on the connection of `alias` in this thread. Raises Django's database errors, as its own would."""
    wrapper = connections[alias]
    wrapper.ensure_connection()
    with wrapper.wrap_database_errors, psycopg.Cursor(wrapper.connection) as cursor:
        yield cursor
