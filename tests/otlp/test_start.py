"""What stops a start, by name; what a start brings up to date; and what it waits for."""

import http.client
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connections

from metering.otlp import start
from metering.otlp.start import STORE_SETTINGS, prepare
from tests.crash.processes import ROOT, Crew
from tests.ground.conftest import clean_environment
from tests.ground.waiting import gone, until
from tests.otlp.make import body, llm
from tests.otlp.server import free_port
from tests.otlp.server import start as start_server
from tests.otlp.storing import stored

RECEIVE = [sys.executable, "manage.py", "receive_telemetry"]


def refused(*, state: Path, **environment: str) -> str:
    """What a start that has to fail said."""
    done = subprocess.run(
        RECEIVE, cwd=ROOT, env=clean_environment(STATE_DIR=str(state), OTLP_PORT=str(free_port()), **environment),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    return done.stderr


@pytest.mark.spec("T10")
@pytest.mark.parametrize("sink", ["timescale", "fanout"])
def test_a_sink_with_a_store_names_every_setting_that_is_missing(tmp_path: Path, sink: str) -> None:
    said = refused(state=tmp_path, OTLP_SINK_TYPE=sink)
    assert f"OTLP_SINK_TYPE={sink}" in said
    for name in STORE_SETTINGS:
        assert name in said


@pytest.mark.spec("T10")
def test_an_incomplete_address_of_the_store_names_what_is_missing(tmp_path: Path) -> None:
    said = refused(state=tmp_path, OTLP_SINK_TYPE="timescale", OTLP_TS_HOST="h", OTLP_TS_USER="u")
    assert "OTLP_TS_PORT, OTLP_TS_PASSWORD, OTLP_TS_DBNAME, OTLP_TS_SSLMODE not set" in said


@pytest.mark.spec("T10")
def test_an_unknown_sink_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    said = refused(state=tmp_path, OTLP_SINK_TYPE="kafka")
    assert "OTLP_SINK_TYPE='kafka' is not known. Write logging or fanout or timescale." in said


@pytest.mark.spec("T10")
def test_an_archive_that_can_not_be_written_is_refused(database: None, settings: Any, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    settings.OTLP_SINK_TYPE, settings.OTLP_ARCHIVE_DIR = "fanout", in_the_way / "archive"
    with pytest.raises(ImproperlyConfigured, match=r"OTLP_ARCHIVE_DIR=.*Not a directory"):
        prepare()
    settings.OTLP_ARCHIVE_DIR = tmp_path / "made" / "by" / "it"
    prepare()
    assert list(settings.OTLP_ARCHIVE_DIR.iterdir()) == []


@pytest.mark.spec("T10")
def test_the_logging_sink_needs_no_store(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.OTLP_SINK_TYPE = "logging"
    monkeypatch.setattr(start, "has_store", lambda: False)
    prepare()


@pytest.mark.spec("T10")
def test_a_missing_migration_is_applied_or_refused_as_the_setting_says(database: None, settings: Any) -> None:
    settings.OTLP_SINK_TYPE = "timescale"
    with connections["telemetry.schema"].cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE app = 'otlp' AND name LIKE '%days' RETURNING app, name, applied"
        )
        (gone,) = cursor.fetchall()
    try:
        settings.OTLP_TS_AUTO_MIGRATE = False
        with pytest.raises(ImproperlyConfigured, match="OTLP_TS_AUTO_MIGRATE=0"):
            prepare()
    finally:
        with connections["telemetry.schema"].cursor() as cursor:
            cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, %s)", gone)
    settings.OTLP_TS_AUTO_MIGRATE = True
    prepare()
    prepare()


@pytest.mark.spec("T10")
def test_an_empty_database_is_made_at_the_start(database: None, crew: Crew) -> None:
    try:
        made = start_server(crew, DATABASE_NAME_PREFIX="test_fresh_")
        until(lambda: made.get("/health/ready").json["parts"]["telemetry"] == "ready")
    finally:
        crew.end()
        import psycopg

        from config.databases import address_of
        from config.owners import owner_named

        address = address_of(owner_named("telemetry"))
        with psycopg.connect(
            host=address.host, port=address.port, user=address.user, password=address.password, dbname="postgres",
            autocommit=True,
        ) as server:  # fmt: skip
            server.execute("DROP DATABASE IF EXISTS test_fresh_telemetry WITH (FORCE)")


def test_a_start_waits_for_its_database(database: None, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.OTLP_SINK_TYPE = "timescale"
    attempts: list[float] = []
    real = start.prepare_store

    def away_twice() -> None:
        if len(attempts) < 2:
            raise OperationalError
        real()

    monkeypatch.setattr(start, "prepare_store", away_twice)
    prepare(pause=attempts.append)
    assert attempts == [start.AGAIN_SECONDS] * 2


@pytest.mark.trap("T4")
@pytest.mark.parametrize("step", ["otlp.inserted", "otlp.stored"])
def test_a_process_killed_before_its_answer_leaves_each_event_once_after_the_resend(
    crew: Crew, make_token: Any, step: str
) -> None:
    token = make_token()
    sent = body([llm(f"e-{number}") for number in range(50)])
    dying = start_server(crew, CRASH_KILL=step)
    for _ in range(2):
        with pytest.raises((OSError, http.client.HTTPException)):
            dying.post(sent, token=token)
        until(dying.processes)
    assert stored() == (50 if step == "otlp.stored" else 0)
    dying.parent.terminate()
    healthy = start_server(crew)
    assert healthy.post(sent, token=token).rejected == (0, "")
    assert stored() == 50


@pytest.mark.trap("T4")
def test_a_sender_that_gave_up_waiting_sends_again_and_stores_nothing_twice(crew: Crew, make_token: Any) -> None:
    token = make_token()
    sent = body([llm(f"e-{number}") for number in range(50)])
    slow = start_server(crew, CRASH_SLOW="otlp.inserted:3", OTLP_PROCESSES="2")
    with slow.socket() as connection:
        connection.sendall(slow.head(token=token, Content_Length=str(len(sent))) + sent)
    assert slow.post(sent, token=token).status == 200
    assert slow.post(sent, token=token).status == 200
    until(lambda: stored() == 50)


def test_a_stopping_receiver_finishes_what_it_took(crew: Crew, make_token: Any) -> None:
    token = make_token()
    server = start_server(crew, CRASH_SLOW="otlp.inserted:2")
    statuses: list[int] = []
    sending = threading.Thread(target=lambda: statuses.append(server.post(body([llm("e")]), token=token).status))
    sending.start()
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND usename = 'telemetry_owner'"
    )

    def is_in_work() -> bool:
        with connections["telemetry"].cursor() as cursor:
            cursor.execute(waiting)
            return bool(cursor.fetchone()[0])

    until(is_in_work)
    server.parent.terminate()
    sending.join()
    assert statuses == [200]
    assert server.parent.wait(timeout=60) == 0


def test_a_killed_parent_leaves_nobody_behind_who_keeps_the_port(database: None, crew: Crew) -> None:
    server = start_server(crew, OTLP_PROCESSES="2")
    until(lambda: len(server.processes()) == 2)
    children = server.processes()
    server.parent.kill()
    until(lambda: all(gone(pid) for pid in children))


def test_a_killed_process_is_replaced_at_once(database: None, crew: Crew) -> None:
    server = start_server(crew)
    (first,) = server.processes()
    os.kill(first, signal.SIGKILL)
    until(lambda: server.processes() not in ([first], []))
    until(lambda: server.get("/health/live").status == 200)
