"""`docs/spec-coverage.md`, made from `docs/spec-ids.toml` and the `spec` and `trap` marks of the tests.

    python -m tests.coverage_table            writes it
    python -m tests.coverage_table --check    fails if it is not current
    python -m tests.coverage_table --due      fails if something that is due has no test

Marks are read from the source, so nothing is imported and no service is started.
"""

import ast
import os
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
IDS, PAGE = Path("docs/spec-ids.toml"), Path("docs/spec-coverage.md")
KINDS = {"spec": "Requirements", "trap": "Traps"}

Coverage = dict[tuple[str, str], Counter[Path]]
"""(kind, id) to how many tests of which file prove it."""


class UnknownId(ValueError):
    """A test names an id that docs/spec-ids.toml does not hold. Correct the mark."""


def known_ids(root: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Kind to id to its entry, in the order of the file."""
    return tomllib.loads((root / IDS).read_text())


def coverage(root: Path) -> Coverage:
    """What the marks say. Raises `UnknownId`."""
    known, found = known_ids(root), defaultdict[tuple[str, str], Counter[Path]](Counter)
    for path in sorted((root / "tests").rglob("test_*.py")):
        relative = path.relative_to(root)
        for kind, identity, where in _marks(ast.parse(path.read_text())):
            if identity not in known[kind]:
                raise UnknownId(f"{relative}: {where} is marked {kind}({identity!r}), which {IDS} does not hold.")
            found[kind, identity][relative] += 1
    return found


def _marks(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """(kind, id, test) of every test, from its own decorators, its class's, and the module's `pytestmark`."""
    yield from _tests(tree.body, list(_assigned(tree.body)))


def _tests(body: list[ast.stmt], inherited: list[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        own = [mark for decorator in node.decorator_list for mark in _mark(decorator)]
        if isinstance(node, ast.ClassDef):
            yield from _tests(node.body, inherited + own + list(_assigned(node.body)))
        elif node.name.startswith("test_"):
            params = [mark for decorator in node.decorator_list for mark in _inner_marks(decorator)]
            for kind, identity in dict.fromkeys(inherited + own + params):
                yield kind, identity, node.name


def _assigned(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node in body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets):
            values = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
            for value in values:
                yield from _mark(value)


def _inner_marks(decorator: ast.expr) -> Iterator[tuple[str, str]]:
    # pytest.param(…, marks=pytest.mark.spec("O7")) inside a parametrize
    for node in ast.walk(decorator):
        if isinstance(node, ast.keyword) and node.arg == "marks":
            for value in ast.walk(node.value):
                if isinstance(value, ast.expr):
                    yield from _mark(value)


def _mark(node: ast.expr) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in KINDS:
        for argument in node.args:
            yield node.func.attr, ast.literal_eval(argument)


def page(root: Path) -> str:
    """The whole page. Raises `UnknownId`."""
    known, found = known_ids(root), coverage(root)
    parts = [
        "# What is proven\n",
        "Made by `python -m tests.coverage_table` from `docs/spec-ids.toml` and the marks of the tests. A number says\n"
        "how many tests of a file carry the mark. *Later* stands for what this release does not have to do.\n",
    ]
    for kind, title in KINDS.items():
        entries = known[kind]
        due = [identity for identity, entry in entries.items() if entry.get("due")]
        proven = [identity for identity in due if found[kind, identity]]
        parts.append(f"## {title}\n\n{len(proven)} of {len(due)} that are due have tests.\n")
        parts.append("| id | what | proven by | open |\n|---|---|---|---|")
        for identity, entry in entries.items():
            tests = ", ".join(
                f"[{_short(path)}]({_link(path)}) {n}" for path, n in sorted(found[kind, identity].items())
            )
            parts.append(f"| {identity} | {entry['title']} | {tests} | {_open(entry, bool(tests))} |")
        parts.append("")
    return "\n".join(parts)


def _open(entry: dict[str, Any], tested: bool) -> str:
    missing = str(entry.get("open", ""))
    if entry.get("due"):
        return missing if tested else f"**no test yet** {missing}".strip()
    return missing or "later"


def _short(path: Path) -> str:
    return str(path.relative_to("tests").with_suffix("")).replace("test_", "")


def _link(path: Path) -> str:
    return os.path.relpath(path, PAGE.parent)


def undone(root: Path) -> list[str]:
    """What is due and has no test."""
    found = coverage(root)
    return [
        f"{kind} {identity}: {entry['title']}"
        for kind, entries in known_ids(root).items()
        for identity, entry in entries.items()
        if entry.get("due") and not found[kind, identity]
    ]


def main(arguments: list[str]) -> str | None:
    """Run the command; the text of the failure, or None."""
    try:
        if "--due" in arguments:
            missing = undone(ROOT)
            return "These have no test yet:\n" + "\n".join(missing) if missing else None
        text = page(ROOT)
    except UnknownId as error:
        return str(error)
    if "--check" in arguments:
        current = (ROOT / PAGE).exists() and (ROOT / PAGE).read_text() == text
        return None if current else f"{PAGE} is stale. Run `python -m tests.coverage_table` and commit it."
    (ROOT / PAGE).write_text(text)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
