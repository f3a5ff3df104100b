"""Structured logs, one JSON object a line on standard error, from every library and every process (O31).

What a line may hold is decided here and nowhere else: names, numbers, times, states and exact ids. Bytes, structures
and JSON texts (payloads, envelopes, receipts) never pass, fields named like a secret or like a person never pass, long
texts are cut, and of an exception its class, its first line and its code lines remain: PostgreSQL quotes whole rows
in the lines below.
"""

import logging.config
import re
import sys
import traceback
from collections.abc import Mapping, MutableMapping
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any
from uuid import UUID

import structlog
from structlog.typing import EventDict, ExcInfo, Processor

MAX_TEXT = 500
"""Characters of one field; enough for a sentence of advice, too short for a document."""
MAX_FRAMES = 12
"""Code lines of one exception, the innermost."""
MAX_ITEMS = 20
"""Items of a short list of names or numbers."""
HIDDEN = "[hidden]"
SECRET_OR_PERSON = re.compile(
    r"password|passwd|secret|(?<!lease_)token$|authorization|cookie|api_?key|credential|tenant_name|account_name|user_?name|"
    r"email|payload|envelope$|receipt$|body|definition$",
    re.IGNORECASE,
)
SHOWN_AS_TEXT = (Decimal, datetime, date, UUID)
ROOT = Path(__file__).resolve().parent.parent


def settings_for(*, level: str, console: bool, version: str, region: str) -> dict[str, Any]:
    """Django's `LOGGING`. `console` gives coloured lines for a person instead of JSON, with the same fields."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _Where(version=version, region=region),
        render_exception,
        low_sensitivity,
    ]
    renderer: Processor = (
        structlog.dev.ConsoleRenderer() if console else structlog.processors.JSONRenderer(sort_keys=True)
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structured": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
                "foreign_pre_chain": shared,
            }
        },
        "handlers": {
            "standard_error": {
                "class": "logging.StreamHandler",
                "formatter": "structured",
                "stream": "ext://sys.stderr",
            }
        },
        "root": {"handlers": ["standard_error"], "level": level},
        "loggers": {
            "django.server": {"handlers": [], "propagate": True},
            "celery.beat": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "django_structlog.celery.receivers": {"level": "WARNING"},
        },
    }


def configure(settings: Mapping[str, Any]) -> None:
    """Django's `LOGGING_CONFIG`, and Celery's: the standard library and structlog write through the same chain."""
    logging.config.dictConfig(dict(settings))
    structured = settings.get("formatters", {}).get("structured")
    if structured:
        structlog.configure(
            processors=[
                structlog.stdlib.filter_by_level,
                *structured["foreign_pre_chain"],
                structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
            ],
            logger_factory=structlog.stdlib.LoggerFactory(),
            wrapper_class=structlog.stdlib.BoundLogger,
            cache_logger_on_first_use=True,
        )


class _Where:
    """Adds the release and region that wrote the line."""

    def __init__(self, *, version: str, region: str) -> None:
        self._fields = {"version": version, "region": region}

    def __call__(self, _logger: Any, _method: str, event: EventDict) -> EventDict:
        for name, value in self._fields.items():
            event.setdefault(name, value)
        return event


def render_exception(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """`exc_info` becomes `error_class`, `error` (its first line) and `error_at` (the innermost code lines)."""
    error = _exception(event.pop("exc_info", None))
    if error is not None:
        event["error_class"] = type(error).__qualname__
        event["error"] = first_line(str(error))
        frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
        event["error_at"] = " < ".join(f"{_short(frame.filename)}:{frame.lineno}" for frame in reversed(frames))
    return event


def _exception(given: "ExcInfo | BaseException | bool | None") -> BaseException | None:
    if isinstance(given, BaseException):
        return given
    if isinstance(given, tuple):
        return given[1]
    return sys.exc_info()[1] if given else None


def _short(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) and ".venv" not in path.parts else path.name


def first_line(text: str) -> str:
    """The first line, also of a text that was quoted with its line breaks escaped."""
    return text.partition("\n")[0].partition("\\n")[0]


def low_sensitivity(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Let names, numbers, times and ids through, and nothing that could be a document, a secret or a person."""
    return {
        str(name): HIDDEN if SECRET_OR_PERSON.search(str(name)) else _plain(value)
        for name, value in event.items()
        if not str(name).startswith("_")
    } | {name: value for name, value in event.items() if str(name).startswith("_")}


def _plain(value: Any) -> Any:
    value = value.value if isinstance(value, Enum) else value
    if isinstance(value, bool | int | float | NoneType):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, SHOWN_AS_TEXT):
        return str(value)
    if isinstance(value, list | tuple | set | frozenset) and all(isinstance(item, str | int) for item in value):
        return [_plain(item) for item in list(value)[:MAX_ITEMS]]
    return f"<{type(value).__name__}>"


def _text(value: str) -> str:
    if value.strip()[:1] + value.strip()[-1:] in {"{}", "[]"}:
        return f"<text of {len(value)} characters>"
    line = first_line(value)
    return line if len(line) <= MAX_TEXT else f"{line[:MAX_TEXT]}…"
