"""The whole system as real processes: kill -9, Ctrl-C, real servers by URL, the demo.

One file, so that one process of a parallel run makes the databases, once.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from config.embedded import Embedded, running_services
from config.owners import OWNERS
from tests.ground.conftest import ROOT, clean_environment, open_directory
from tests.ground.system import System
from tests.ground.waiting import gone, until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def prepared() -> Iterator[Path]:
    """A state directory after one start and one Ctrl-C: every database is made and migrated."""
    path = open_directory()
    system = System(path)
    try:
        system.start()
        system.await_ready()
        assert system.interrupt() == 0
        yield path
    finally:
        system.ensure_ended()
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def directory(prepared: Path) -> Iterator[Path]:
    """A copy of it."""
    path = open_directory()
    subprocess.run(["cp", "-a", f"{prepared}/.", str(path)], check=True)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def system(directory: Path) -> Iterator[System]:
    system = System(directory)
    yield system
    system.ensure_ended()


def administrator(system: System) -> psycopg.Connection:
    services = system.services()
    return psycopg.connect(
        host=services.postgres_host,
        port=services.postgres_port,
        user=services.postgres_user,
        password=services.postgres_password,
        dbname="postgres",
        autocommit=True,
    )


def demo(state: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "demo", "EXIT=1", *arguments],
        cwd=ROOT,
        env=clean_environment(STATE_DIR=str(state), WEB_PORT="0", OTLP_PORT="0"),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_the_system_survives_kills_and_ends_without_a_trace(system: System) -> None:
    system.start()
    system.await_ready()
    assert "login: operator / " in system.output

    # A second start is refused with process and URL, and does no harm.
    assert system.process is not None
    again = System(system.state)
    again.start()
    assert again.process is not None
    assert again.process.wait(60) == 1
    said = again.output
    assert f"Process {system.process.pid} already runs" in said
    assert system.url in said
    system.get("/health/ready")

    # Killed programs come back.
    children = dict(system.record["children"])  # type: ignore[call-overload]  # JSON
    for pid in children.values():
        os.kill(pid, signal.SIGKILL)
    until(lambda: set(dict(system.record["children"]).values()).isdisjoint(children.values()))  # type: ignore[call-overload]  # the record is JSON
    until(lambda: set(dict(system.record["children"])) == set(children))  # type: ignore[call-overload]  # likewise

    # kill -9 of the supervisor leaves no process.
    with administrator(system) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    family = system.family()
    assert len(family) > 10
    system.kill()
    until(lambda: all(gone(pid) for pid in family))
    assert running_services(system.state) is None

    # The next start is clean, and has all data and the same login.
    login = next(line for line in system.output.splitlines() if "login:" in line).split("login:")[1].split("logs:")[0]
    system.start()
    system.await_ready()
    assert system.output.count(login) == 2
    with administrator(system) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)

    # Ctrl-C ends everything in good order.
    family = system.family()
    assert system.interrupt() == 0
    assert all(gone(pid) for pid in family)
    assert not (system.state / "supervisor.json").exists()
    assert "database system is shut down" in (system.state / "log" / "postgres.log").read_text().splitlines()[-1]


def test_real_servers_by_url_need_no_embedded_ones(directory: Path, empty_state: Path) -> None:
    system = System(empty_state)
    with Embedded(state=directory) as real:
        login = f"{real.postgres_user}:{real.postgres_password}@{real.postgres_host}:{real.postgres_port}"
        system.variables = {
            **{f"DATABASE_URL_{o.name.upper()}": f"postgresql://{login}/{o.name}" for o in OWNERS},
            "REDIS_URL": real.redis_url,
            "DATABASE_ROLE_SECRET": "one long random text for all processes",
        }
        try:
            system.start()
            system.await_ready()
            system.get("/health/ready")
            assert not (system.state / "services.json").exists()
            assert not (system.state / "postgres").exists()
            assert system.interrupt() == 0
        finally:
            system.ensure_ended()
        with psycopg.connect(f"postgresql://{login}/core") as connection:
            assert connection.execute("SELECT count(*) FROM auth_user").fetchone() == (1,)


@pytest.mark.spec("O7", "O26", "T5", "T13")
def test_the_demo_delivers_and_proves_a_trace(directory: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    rows = [f"2023-11-16 18:17:{second:02}.0000000,{second * 100},{second}" for second in range(30)]
    rows[7] = "2023-11-16 18:17:07.0000000,many,few"
    trace.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows]) + "\n")

    done = demo(directory, f"TRACE={trace}")
    assert done.returncode == 0, done.stdout + done.stderr
    last = next(line for line in reversed(done.stdout.splitlines()) if line.startswith("DEMO "))
    figures = json.loads(last.removeprefix("DEMO "))
    assert figures["ok"]
    assert (figures["runs"], figures["events"], figures["acknowledged"]) == (29, 58, 58)
    assert (figures["quarantined"], figures["delivered"]) == (0, 58)
    assert [row["line"] for row in figures["skipped"]] == [9]
    assert "line 9: " in done.stdout
    telemetry, consumed = figures["telemetry"], figures["telemetry"]["consumption"]
    assert (telemetry["sent"], telemetry["stored"], telemetry["duplicates"], telemetry["conflicts"]) == (29, 29, 0, 0)
    assert (telemetry["rejected"], telemetry["dropped"]) == (0, {})
    resources = figures["resources"]
    assert resources["connector"] == {
        "new": [200, 200, 200], "again": [200], "conflicting": [409], "forged": [401], "tooMany": [429],
    }  # fmt: skip
    assert resources["attachments"] == {
        "uploaded": [201], "again": [200], "replaced": [200], "tooLarge": [429],
        "stoodAfterRefusal": True, "stoodAfterRollback": True,
    }  # fmt: skip
    assert resources["quota"]["uploads"] == {"used": 44_000, "held": 0, "free": 21_536, "limit": 65_536}
    assert resources["surprises"] == []
    assert int(consumed["inputTokens"]) == sum(second * 100 for second in range(30) if second != 7)
    assert int(consumed["outputTokens"]) == sum(second for second in range(30) if second != 7)
    assert (consumed["posted"], consumed["orphanLines"]) == (consumed["charges"], 0)
    assert int(consumed["chargedPicos"]) == sum(
        second * (100 * 150_000 + 600_000) for second in range(30) if second != 7
    )
    assert not (directory / "supervisor.json").exists()
