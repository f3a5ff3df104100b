"""Fixtures of the crash tests: a crew of processes that is gone afterwards, and an installation of its own."""

import shutil
from collections.abc import Iterator

import pytest

from tests.crash.processes import Crew
from tests.crash.site import Site
from tests.ground.conftest import open_directory


@pytest.fixture
def crew(database: None) -> Iterator[Crew]:
    """Processes on the databases of the tests."""
    made = Crew()
    yield made
    made.end()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Servers that the tests of one file may kill; what they append stays."""
    state = open_directory()
    made = Site(state)
    made.migrate()
    yield made
    made.embedded.stop()
    shutil.rmtree(state, ignore_errors=True)


@pytest.fixture
def site_crew(site: Site) -> Iterator[Crew]:
    """Processes on the site."""
    made = site.crew()
    yield made
    made.end()
