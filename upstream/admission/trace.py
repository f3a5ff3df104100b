"""Read a trace of LLM requests: TIMESTAMP, ContextTokens, GeneratedTokens (UTC, at most 100 ns digits).

A row that is not exactly of this shape is reported with its line number and left out; nothing in it is guessed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from outbox.contracts.contract import timestamp

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
MAX_LINE_BYTES = 200
"""A longer line is no row of a trace, and need not be kept in memory to say so."""
ROW = re.compile(
    r"(?P<second>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.(?P<fraction>\d{1,9}),(?P<context>\d{1,15}),(?P<generated>\d{1,15})",
    re.ASCII,
)


class NotATrace(ValueError):
    """The file does not begin with the header of a trace. Give a CSV with TIMESTAMP,ContextTokens,GeneratedTokens."""


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One request. Its time is cut to microseconds."""

    line: int
    requested_at: str
    context_tokens: int
    generated_tokens: int


@dataclass(frozen=True, slots=True)
class BadRow:
    """A line that is not a row, and why."""

    line: int
    reason: str


def read_trace(path: Path) -> Iterator[TraceRow | BadRow]:
    """Every line after the header, in order. Raises `NotATrace`, `OSError`."""
    with path.open("rb") as file:
        if _text(file.readline(MAX_LINE_BYTES)) != HEADER:
            raise NotATrace(f"{path}: {NotATrace.__doc__}")
        number = 1
        while line := file.readline(MAX_LINE_BYTES):
            number += 1
            if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                    pass
                yield BadRow(number, f"longer than {MAX_LINE_BYTES} bytes")
            else:
                yield _row(number, _text(line))


def _text(line: bytes) -> str | None:
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode("ascii")
    except UnicodeDecodeError:
        return None


def _row(number: int, text: str | None) -> TraceRow | BadRow:
    match = ROW.fullmatch(text) if text is not None else None
    if match is None:
        return BadRow(number, f"not of the form {HEADER}")
    try:
        second = datetime.strptime(match["second"], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return BadRow(number, "no such time")
    microsecond = int(match["fraction"].ljust(6, "0")[:6])
    return TraceRow(
        line=number,
        requested_at=timestamp(second.replace(microsecond=microsecond)),
        context_tokens=int(match["context"]),
        generated_tokens=int(match["generated"]),
    )
