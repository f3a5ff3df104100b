"""What a log line may hold, whoever writes it."""

import io
import json
import logging
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
import structlog

from config.logging import HIDDEN, MAX_TEXT, configure, settings_for

EVENT = UUID("01890a5d-ac96-774b-bcce-b302099a8057")


@pytest.fixture
def lines() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """The JSON lines written so far, through the real configuration."""
    root = logging.getLogger()
    handlers, level, processors = root.handlers[:], root.level, structlog.get_config()
    configure(settings_for(level="INFO", console=False, version="1.2.3", region="north"))
    stream = io.StringIO()
    handler = root.handlers[0]
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**processors)


def test_a_line_is_one_json_object_with_time_place_and_ids(lines: Callable[[], list[dict[str, Any]]]) -> None:
    structlog.get_logger("outbox.settle").warning(
        "late_result_fenced", producer="core", event_id=EVENT, lease_token=7, price=Decimal(3), count=2
    )
    (line,) = lines()
    assert datetime.fromisoformat(line.pop("timestamp")).tzinfo == UTC
    assert line == {
        "event": "late_result_fenced",
        "logger": "outbox.settle",
        "level": "warning",
        "producer": "core",
        "event_id": str(EVENT),
        "lease_token": 7,
        "price": "3",
        "count": 2,
        "version": "1.2.3",
        "region": "north",
    }


def test_the_standard_library_and_structlog_write_the_same_form(lines: Callable[[], list[dict[str, Any]]]) -> None:
    logging.getLogger("some.library").info("task %s took %d ms", "dispatch", 12, extra={"queue": "owner.core"})
    structlog.get_logger("own").info("done")
    first, second = lines()
    assert (first["event"], first["queue"]) == ("task dispatch took 12 ms", "owner.core")
    assert first.keys() - {"queue"} == second.keys()


@pytest.mark.parametrize(
    "name",
    [
        *("password", "DATABASE_PASSWORD", "api_key", "authorization", "session_token", "secret_key", "cookie"),
        *("tenant_name", "account_name", "username", "email"),
        *("payload", "event_payload", "event_envelope", "receipt", "body"),
    ],
)
@pytest.mark.spec("O31")
def test_fields_named_like_a_secret_a_person_or_a_document_are_hidden(
    name: str, lines: Callable[[], list[dict[str, Any]]]
) -> None:
    structlog.get_logger("own").info("said", **{name: "hunter2"})
    logging.getLogger("library").info("said", extra={name: "hunter2"})
    assert [line[name] for line in lines()] == [HIDDEN, HIDDEN]


@pytest.mark.spec("O31")
def test_documents_never_pass_under_any_name(lines: Callable[[], list[dict[str, Any]]]) -> None:
    structlog.get_logger("own").info(
        "said", a={"tenant": "ACME"}, b=b'{"tenant":"ACME"}', c='{"tenant":"ACME"}', d=object(), e=[{"tenant": "ACME"}],
        f="x" * 10_000, g=["run.created@2.0", 3],
    )  # fmt: skip
    (line,) = lines()
    assert "ACME" not in json.dumps(line)
    assert (line["a"], line["b"], line["d"], line["e"]) == ("<dict>", "<bytes>", "<object>", "<list>")
    assert line["c"] == "<text of 17 characters>"
    assert len(line["f"]) == MAX_TEXT + 1
    assert line["g"] == ["run.created@2.0", 3]


def fail(message: str) -> None:
    raise ValueError(message)


@pytest.mark.spec("O31")
def test_of_an_exception_the_class_the_first_line_and_the_code_lines_remain(
    lines: Callable[[], list[dict[str, Any]]],
) -> None:
    log = structlog.get_logger("own")
    try:
        fail("violates check constraint\nDETAIL:  Failing row contains (ACME, 12 Main Street).")
    except ValueError as error:
        log.exception("failed")
        logging.getLogger("library").error("failed: %r", error, exc_info=True)
    first, second = lines()
    for line in (first, second):
        assert "ACME" not in json.dumps(line)
        assert line["error_class"] == "ValueError"
        assert line["error"] == "violates check constraint"
        assert line["error_at"].startswith("tests/observability/test_logging.py:")


def test_commands_write_logs_to_standard_error_only(
    run_django: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run_django("shell", "-c", "import structlog; structlog.get_logger('x').info('said'); print('answer')")
    assert done.stdout.splitlines()[-1] == "answer"
    assert not any(line.startswith("{") for line in done.stdout.splitlines())
    assert any(json.loads(line)["event"] == "said" for line in done.stderr.splitlines() if line.startswith("{"))


def test_a_task_binds_its_id_to_every_line(run_django: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run_django(
        "shell",
        "-c",
        "from config.celery import app; from django_structlog.celery.steps import DjangoStructLogInitStep;"
        "print(DjangoStructLogInitStep in app.steps['worker'], app.conf.worker_hijack_root_logger)",
    )
    assert done.stdout.splitlines()[-1] == "True False"
