"""The world that the tests of this room look at: built once, broken by each test, and put back by it."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections
from django.test import override_settings

from config.owners import OWNERS
from tests.conftest import empty_tables
from tests.verify import world


@pytest.fixture(scope="module")
def legal_world(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Everything that may legally happen, committed on the real databases and in a stored tree of its own."""
    root = tmp_path_factory.mktemp("stored")
    places = {"ATTACHMENTS_ROOT": root, "ATTACHMENTS_INCOMING": root / ".incoming"}
    with django_db_blocker.unblock(), override_settings(**places), pytest.MonkeyPatch.context() as environment:
        for name, place in places.items():
            environment.setenv(name, str(place))
        world.build()
        yield
        connections.close_all()
        for owner in OWNERS:
            empty_tables(owner)
        connections.close_all()
