"""The world that the tests of this room look at: built once, broken by each test, and put back by it."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections

from config.owners import OWNERS
from tests.conftest import empty_tables
from tests.verify import world


@pytest.fixture(scope="module")
def legal_world(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Everything that may legally happen, committed on the real databases."""
    with django_db_blocker.unblock():
        world.build()
        yield
        connections.close_all()
        for owner in OWNERS:
            empty_tables(owner)
        connections.close_all()
