"""What a run reports: one line per figure, as a table on the screen and as JSON in a file."""

import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench.size import Size


@dataclass(frozen=True, slots=True)
class Line:
    """One figure. `value` is None where it could not be measured; then `note` says why."""

    part: str
    what: str
    value: float | None
    unit: str
    goal: str = ""
    note: str = ""


def show(lines: Sequence[Line]) -> str:
    """The table as text."""
    rows = [("part", "what", "value", "goal", "note")]
    rows += [(line.part, line.what, _value(line), line.goal, line.note) for line in lines]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return "\n".join(
        f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:<{widths[3]}}  {row[4]}".rstrip()
        for row in rows
    )


def _value(line: Line) -> str:
    if line.value is None:
        return "not measured"
    digits = 0 if abs(line.value) >= 100 else 1 if abs(line.value) >= 10 else 2
    return f"{line.value:,.{digits}f} {line.unit}"


def write(lines: Sequence[Line], *, directory: Path, size: Size) -> Path:
    """One JSON file per run, named by its time."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.json"
    machine = {"cpus": os.cpu_count(), "load": os.getloadavg(), "python": platform.python_version()}
    path.write_text(
        json.dumps({"size": asdict(size), "machine": machine, "lines": [asdict(line) for line in lines]}, indent=1)
    )
    return path
