"""Finds every environment variable that the project's code reads, with its default and limits, from the source."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.ground.conftest import ROOT

ROOMS = ("config", "outbox", "upstream", "metering", "billing", "operations", "attachments")
READERS = frozenset({"text", "flag", "integer", "seconds", "word", "database_url"})
NOT_SETTINGS = frozenset({"PATH", "DJANGO_SETTINGS_MODULE"})


@dataclass(frozen=True)
class Variable:
    """One reading: `*` in the name stands for a part that varies; None where the source does not say a literal."""

    name: str
    default: str | None
    limits: str | None


def read_by_the_code() -> set[Variable]:
    """Every variable that a typed reader or `os.environ` is asked for."""
    found: set[Variable] = set()
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            found |= set(_in_source(path))
    procfile = (ROOT / "deploy" / "Procfile").read_text()
    found |= {Variable(name, default, None) for name, default in re.findall(r"\$\{(\w+):-([^}]*)\}", procfile)}
    return {variable for variable in found if variable.name not in NOT_SETTINGS}


def _in_source(path: Path) -> Iterator[Variable]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and _is_reader(node.func) and node.args:
            name = _pattern(node.args[0])
            if name:
                limits = {keyword.arg: keyword.value for keyword in node.keywords}
                low, high = (_literal(limits.get(bound)) for bound in ("low", "high"))
                default = _literal(node.args[1]) if len(node.args) > 1 else None
                yield Variable(name, default, f"{low} to {high}" if low and high else None)


def _is_reader(function: ast.expr) -> bool:
    """`environment.integer(…)`, `networks(…)`, `os.environ.get(…)`, `variables.get(…)`."""
    if isinstance(function, ast.Name):
        return function.id == "networks"
    if not isinstance(function, ast.Attribute):
        return False
    place = ast.unparse(function.value)
    return (place == "environment" and function.attr in READERS) or (
        place in {"os.environ", "variables", "environment"} and function.attr == "get"
    )


def _pattern(argument: ast.expr) -> str | None:
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return argument.value if re.fullmatch(r"[A-Z][A-Z0-9_]*", argument.value) else None
    if isinstance(argument, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in argument.values)
    return None


def _literal(value: ast.expr | None) -> str | None:
    if not isinstance(value, ast.Constant) or value.value is None:
        return None
    if isinstance(value.value, bool):
        return str(int(value.value))
    return str(value.value) or None
