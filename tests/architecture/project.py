"""What belongs to the project: its rooms and its files."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT

ROOMS = ("config", "outbox", "upstream", "metering", "billing", "operations", "attachments")
NOT_OURS = {".venv", ".venv-bench", ".git", ".state", "node_modules", "__pycache__", ".hypothesis"}
TEXT = {".py", ".sql", ".toml", ".yaml", ".yml", ".json", ".md", ".html", ".css", ".js", ".mjs", ".in", ".sh", ""}


def files(*suffixes: str, below: tuple[str, ...] = ("",)) -> Iterator[Path]:
    """Every file of the project with one of these suffixes, relative to its root."""
    for start in below:
        for path in sorted((ROOT / start).rglob("*")):
            relative = path.relative_to(ROOT)
            if path.suffix in suffixes and path.is_file() and not NOT_OURS & set(relative.parts):
                yield relative


def python(*, below: tuple[str, ...] = (*ROOMS, "tests")) -> list[Path]:
    """The Python files, migrations included."""
    return list(files(".py", below=below))


SWITCHED_OFF = re.compile(r"#\s*(noqa|type:\s*ignore|pragma|fmt:\s*(?:off|skip)|pylint|mypy:|isort:)")
REASONED = re.compile(
    r"# (noqa: [A-Z]+[0-9]+(, [A-Z]+[0-9]+)*|type: ignore\[[a-z-]+(, ?[a-z-]+)*\])  (# \w.{3,}|\(\w.{3,}\))$"
)
"""A named rule, and then why it does not hold here: as a comment of its own or in parentheses."""


def lacks_reason(line: str) -> bool:
    """True if the line switches a rule off without naming the rule and the reason. `fmt: skip` needs none."""
    found = SWITCHED_OFF.search(line)
    return found is not None and not found[1].startswith("fmt") and not REASONED.search(line)
