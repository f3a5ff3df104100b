"""Starts that are refused or interrupted: a clear message, and nothing left running."""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.owners import OWNERS
from config.supervise.demo import DemoFailed, said
from tests.ground.conftest import ROOT, clean_environment
from tests.ground.system import System
from tests.ground.waiting import gone, until


@pytest.fixture
def system(empty_state: Path) -> Iterator[System]:
    system = System(empty_state)
    yield system
    system.ensure_ended()


def refused(system: System) -> str:
    """What a start says that must be refused."""
    system.start()
    assert system.process is not None
    assert system.process.wait(60) == 1
    return system.output


def test_a_signal_during_the_preparation_stops_it(system: System) -> None:
    system.start()
    until(lambda: "Preparing" in system.output)
    family = system.family()
    assert system.interrupt() == 0
    assert family
    assert all(gone(pid) for pid in family)


@pytest.mark.parametrize(("name", "advice"), [("WEB_PORT", "WEB_PORT=8001"), ("OTLP_PORT", "OTLP_PORT=4319")])
def test_a_taken_port_is_refused_before_anything_starts(system: System, name: str, advice: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        system.variables = {name: str(port)}
        said = refused(system)
    assert f"port {port}" in said
    assert f"{advice} make up" in said
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


@pytest.mark.parametrize(
    ("argument", "advice"), [("TRACE=/nowhere.csv", "Name a CSV"), ("LIMIT=0", "Write 1 to 1000000000")]
)
def test_an_input_that_is_none_is_refused_before_anything_starts(empty_state: Path, argument: str, advice: str) -> None:
    done = subprocess.run(
        ["make", "demo", argument],
        cwd=ROOT,
        env=clean_environment(STATE_DIR=str(empty_state)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert argument in done.stderr
    assert advice in done.stderr
    assert list(empty_state.iterdir()) == []


def test_a_command_that_prints_no_json_is_named() -> None:
    with pytest.raises(DemoFailed, match="verify"):
        said("verify", "no database answers\n")
    assert said("verify", "a remark\n{}\n") == {}


def test_only_a_listener_of_ours_makes_the_web_server_ready() -> None:
    from config.supervise.address import listens

    with socket.socket() as ours:
        ours.bind(("127.0.0.1", 0))
        port = ours.getsockname()[1]
        assert not listens(os.getpid(), port)
        ours.listen()
        assert listens(os.getpid(), port)
        assert not listens(0, port)


def test_a_state_directory_that_cannot_be_made_is_refused() -> None:
    from config.supervise.directory import take_state_directory
    from config.supervise.refused import Refused

    with pytest.raises(Refused, match="can not be used"):
        take_state_directory(ROOT / "README.md" / "state")


def test_a_record_that_was_cut_off_is_no_record(tmp_path: Path) -> None:
    from config.supervise.directory import read_record

    (tmp_path / "supervisor.json").write_text("{")
    assert read_record(tmp_path) is None
