"""Embedded servers: one owner, joiners, kept data, left-overs, taken ports, kills."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest
import redis

from config.embedded import Embedded, EmbeddedError, Services, running_services
from config.processes import NotMainThread, command_line, spawn
from tests.ground.conftest import ROOT, clean_environment
from tests.ground.waiting import gone, until

OWNER_PROCESS = """
import sys, time
from pathlib import Path
from config.embedded import Embedded
embedded = Embedded(state=Path(sys.argv[1]))
embedded.start()
print(*embedded.server_pids().values(), flush=True)
time.sleep(600)
"""


def connect(services: Services) -> psycopg.Connection:
    return psycopg.connect(
        host=services.postgres_host,
        port=services.postgres_port,
        user=services.postgres_user,
        password=services.postgres_password,
        dbname="postgres",
        autocommit=True,
    )


def write(services: Services) -> None:
    with connect(services) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    with redis.Redis.from_url(services.redis_url) as client:
        client.set("kept", "42")


def read(services: Services) -> tuple[object, object]:
    with connect(services) as connection, redis.Redis.from_url(services.redis_url) as client:
        row = connection.execute("SELECT answer FROM kept").fetchone()
        return row and row[0], client.get("kept")


def start_owner(state: Path) -> tuple[subprocess.Popen[str], list[int]]:
    """A process of its own that owns the servers of `state`, and the servers' process ids."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER_PROCESS, str(state)],
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    return owner, [int(pid) for pid in owner.stdout.readline().split()]


def test_an_empty_directory_becomes_two_servers_whose_data_stays(empty_state: Path) -> None:
    with Embedded(state=empty_state) as services:
        write(services)
        assert running_services(empty_state) == services
    assert running_services(empty_state) is None
    with Embedded(state=empty_state) as services:
        assert read(services) == (42, b"42")
    for secret in ("postgres.password",):
        assert (empty_state / secret).stat().st_mode & 0o077 == 0


def test_postgres_is_durable_and_roomy(state: Path) -> None:
    with Embedded(state=state) as services, connect(services) as connection:
        for setting, value in {
            "fsync": "on",
            "synchronous_commit": "on",
            "full_page_writes": "on",
            "max_connections": "200",
            "shared_preload_libraries": "pg_stat_statements",
            "TimeZone": "UTC",
            "server_encoding": "UTF8",
        }.items():
            row = connection.execute("SELECT current_setting(%s)", [setting]).fetchone()
            assert row == (value,), setting


def test_who_comes_second_joins_and_stops_nothing(state: Path) -> None:
    owner, joiner = Embedded(state=state), Embedded(state=state)
    with owner as services:
        assert joiner.start() == services
        assert (owner.is_owner, joiner.is_owner) == (True, False)
        joiner.stop()
        write(services)
    assert running_services(state) is None


def test_two_directories_run_side_by_side(state: Path, empty_state: Path) -> None:
    with Embedded(state=state) as one, Embedded(state=empty_state) as other:
        assert one.postgres_port != other.postgres_port
        write(one)
        write(other)


def test_a_killed_owner_leaves_no_server_and_no_belief_in_one(state: Path) -> None:
    owner, servers = start_owner(state)
    services = running_services(state)
    assert services is not None
    write(services)
    owner.kill()
    owner.wait()
    until(lambda: all(gone(pid) for pid in servers))
    assert (state / "services.json").exists()
    assert running_services(state) is None
    with Embedded(state=state) as again:
        assert read(again) == (42, b"42")


def test_left_over_servers_are_ended_before_new_ones_start(state: Path) -> None:
    owner, servers = start_owner(state)
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1] for pid in servers]
    owner.terminate()
    owner.wait()
    until(lambda: all(gone(pid) for pid in servers))
    orphans = [_orphan(state, command) for command in commands]
    until(lambda: (state / "postgres" / "postmaster.pid").exists() and (state / "valkey" / "valkey.pid").exists())
    with Embedded(state=state) as services:
        assert all(orphan.wait(10) is not None for orphan in orphans)
        write(services)


def _orphan(state: Path, command: list[bytes]) -> subprocess.Popen[bytes]:
    """A server of this data as a killed owner would leave it where the kernel does not end children."""
    as_servers = (state / "postgres").stat()
    return subprocess.Popen(
        command,
        cwd=state,
        user=as_servers.st_uid if os.geteuid() == 0 else None,
        group=as_servers.st_gid if os.geteuid() == 0 else None,
        extra_groups=[] if os.geteuid() == 0 else None,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_a_pid_file_that_names_a_stranger_is_no_obstacle_and_no_death_sentence(state: Path) -> None:
    owner, servers = start_owner(state)
    for pid in [*servers, owner.pid]:
        os.kill(pid, signal.SIGKILL)
    owner.wait()
    until(lambda: all(gone(pid) for pid in servers))
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        for pid_file, pid in zip(
            (state / "postgres" / "postmaster.pid", state / "valkey" / "valkey.pid"), servers, strict=True
        ):
            pid_file.write_text(pid_file.read_text().replace(str(pid), str(stranger.pid), 1))
        with Embedded(state=state) as services:
            write(services)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("port", ["postgres_port", "valkey_port"])
def test_a_taken_port_is_refused_with_advice_and_nothing_runs(state: Path, port: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        embedded = Embedded(state=state, **{port: taken.getsockname()[1]})
        with pytest.raises(EmbeddedError, match=f"{taken.getsockname()[1]}.*{port.upper()}"):
            embedded.start()
    assert embedded.server_pids() == {}
    assert running_services(state) is None


def test_killed_servers_are_revived_on_their_ports_with_their_data(state: Path) -> None:
    embedded = Embedded(state=state)
    with embedded as services:
        write(services)
        before = embedded.server_pids()
        for pid in before.values():
            os.kill(pid, signal.SIGKILL)
        revived: set[str] = set()

        def both_revived() -> bool:
            revived.update(embedded.revive())
            return revived == {"postgres", "valkey"}

        until(both_revived)
        assert read(services) == (42, b"42")
        assert set(before.values()).isdisjoint(embedded.server_pids().values())
        assert embedded.revive() == ()


def test_a_killed_initdb_is_never_taken_for_a_database(empty_state: Path) -> None:
    half = empty_state / "postgres.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    with Embedded(state=empty_state) as services:
        write(services)
    assert not half.exists()


def test_a_server_that_cannot_start_shows_its_last_words(state: Path) -> None:
    (state / "postgres" / "PG_VERSION").write_text("9.6\n")
    with pytest.raises(EmbeddedError, match="incompatible"):
        Embedded(state=state).start()
    assert running_services(state) is None


def test_children_are_started_by_the_main_thread_only(state: Path) -> None:
    raised: list[BaseException] = []

    def start() -> None:
        try:
            spawn(command=["true"], log=state / "log" / "none.log", directory=state)
        except NotMainThread as error:
            raised.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert len(raised) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to leave its own home")
def test_root_behind_a_closed_door_keeps_its_data_under_var_lib(tmp_path: Path, fresh_servers: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    state = closed / "state"
    try:
        with Embedded(state=state) as services:
            write(services)
        home = Path((state / "embedded.location").read_text())
        assert home.parent == Path("/var/lib")
        with Embedded(state=state) as services:
            assert read(services) == (42, b"42")
    finally:
        remove_home(state)


def remove_home(state: Path) -> None:
    location = state / "embedded.location"
    if location.exists():
        subprocess.run(["rm", "-r", location.read_text().strip()], check=True)


def test_a_command_line_is_empty_for_a_process_that_ended() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert command_line(child.pid) == ""
