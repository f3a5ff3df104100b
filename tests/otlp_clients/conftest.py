"""One installation with one receiver for all tests of this room."""

import shutil
from collections.abc import Iterator

import pytest

from tests.crash.processes import Crew
from tests.crash.site import Site
from tests.ground.conftest import open_directory
from tests.otlp_clients.receiver import Receiver


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """Servers of this room's own, which its tests may kill."""
    state = open_directory()
    made = Site(state)
    made.migrate()
    yield made
    made.embedded.stop()
    shutil.rmtree(state, ignore_errors=True)


@pytest.fixture(scope="session")
def receiver(site: Site) -> Iterator[Receiver]:
    """The receiver, in two processes."""
    crew = site.crew()
    try:
        yield Receiver(site, crew)
    finally:
        crew.end()


@pytest.fixture
def clients(site: Site) -> Iterator[Crew]:
    """Where clients run; they are gone afterwards."""
    crew = site.crew()
    yield crew
    crew.end()
