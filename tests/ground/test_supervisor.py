"""`make up` as real processes: refused starts, Ctrl-C, kill -9 of the supervisor, real servers by URL."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from config.embedded import Embedded, running_services
from config.owners import OWNERS
from tests.ground.conftest import ROOT, clean_environment
from tests.ground.system import System
from tests.ground.waiting import gone, until


@pytest.fixture
def system(empty_state: Path) -> Iterator[System]:
    system = System(empty_state)
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


def refused(system: System) -> str:
    """What a start says that must be refused."""
    system.start()
    assert system.process is not None
    assert system.process.wait(60) == 1
    return system.output


@pytest.mark.slow
def test_the_system_survives_kills_and_ends_without_a_trace(system: System) -> None:
    system.start()
    system.await_ready()
    assert "login: operator / " in system.output

    # A second start is refused with process and URL, and does no harm.
    assert system.process is not None
    again = System(system.state)
    said = refused(again)
    assert f"Process {system.process.pid} already runs" in said
    assert system.url in said
    system.get("/health/ready")

    # Killed programs come back.
    children = dict(system.record["children"])  # type: ignore[call-overload]  # JSON
    for pid in children.values():
        os.kill(pid, signal.SIGKILL)
    until(lambda: set(dict(system.record["children"]).values()).isdisjoint(children.values()))  # type: ignore[call-overload]
    until(lambda: set(dict(system.record["children"])) == set(children))  # type: ignore[call-overload]

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


@pytest.mark.slow
def test_real_servers_by_url_need_no_embedded_ones(system: System, state: Path) -> None:
    with Embedded(state=state) as real:
        login = f"{real.postgres_user}:{real.postgres_password}@{real.postgres_host}:{real.postgres_port}"
        system.variables = {
            **{f"DATABASE_URL_{o.name.upper()}": f"postgresql://{login}/elsewhere_{o.name}" for o in OWNERS},
            "REDIS_URL": real.redis_url,
            "DATABASE_ROLE_SECRET": "one long random text for all processes",
        }
        system.start()
        system.await_ready()
        system.get("/health/ready")
        assert not (system.state / "services.json").exists()
        assert not (system.state / "postgres").exists()
        assert system.interrupt() == 0
        with psycopg.connect(f"postgresql://{login}/postgres") as connection:
            names = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'elsewhere_%'").fetchall()
        assert len(names) == len(OWNERS)


def test_a_signal_during_the_preparation_stops_it(system: System) -> None:
    system.start()
    until(lambda: "Preparing" in system.output)
    family = system.family()
    assert system.interrupt() == 0
    assert family
    assert all(gone(pid) for pid in family)


def test_a_taken_web_port_is_refused_before_anything_starts(system: System) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        system.variables = {"WEB_PORT": str(port)}
        said = refused(system)
    assert f"port {port}" in said
    assert "WEB_PORT=8001 make up" in said
    assert not (system.state / "postgres").exists()


@pytest.mark.parametrize(
    ("name", "value"), [("WEB_PORT", "eighty"), ("WEB_PORT", "70000"), ("POSTGRES_PORT", "-1"), ("VALKEY_PORT", "x")]
)
def test_a_port_that_is_none_is_refused_with_advice(system: System, name: str, value: str) -> None:
    system.variables = {name: value}
    said = refused(system)
    assert name in said
    assert "Traceback" not in said


def test_real_servers_without_a_role_secret_are_refused_with_advice(system: System) -> None:
    system.variables = {
        **{f"DATABASE_URL_{o.name.upper()}": f"postgresql://u:p@127.0.0.1:2/{o.name}" for o in OWNERS},
        "REDIS_URL": "redis://127.0.0.1:1/0",
    }
    assert "DATABASE_ROLE_SECRET is not set" in refused(system)


def test_make_without_python_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    for name in ("requirements.txt", "requirements-dev.txt"):
        (tmp_path / name).touch()
    done = subprocess.run(
        ["make", "up", "PYTHON="], cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "Python 3.11 or newer was not found" in done.stderr
    assert not (tmp_path / ".venv").exists()
