"""The style of the house, where a machine can see it."""

import ast
from pathlib import Path

import pytest

from outbox.contracts.publish.catalogue import contract_modules
from tests.architecture.project import ROOMS, TEXT, files, lacks_reason, python
from tests.conftest import ROOT

MAX_LINES = 400
NAMES_OF_NOTHING = {
    "services.py", "utils.py", "util.py", "helpers.py", "helper.py", "managers.py", "base.py", "common.py", "misc.py",
    "core.py", "signals.py", "lib.py", "tools.py", "shared.py",
}  # fmt: skip
UNFINISHED = ("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")
HERE = Path("tests/architecture")


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    long = {
        str(path): length
        for path in files(".py", ".sql", below=(*ROOMS, "tests"))
        if "migrations" not in path.parts and (length := len((ROOT / path).read_text().splitlines())) > MAX_LINES
    }
    assert long == {}


def test_no_file_is_named_after_nothing() -> None:
    assert [str(path) for path in python() if path.name in NAMES_OF_NOTHING] == []


def test_nothing_is_left_unfinished() -> None:
    marked = [
        f"{path}:{number}"
        for path in files(*TEXT)
        if path.name not in {"package-lock.json"}
        for number, line in enumerate((ROOT / path).read_text(errors="replace").splitlines(), 1)
        if any(word in line.split() or f"{word}:" in line or f"{word}(" in line for word in UNFINISHED)
    ]
    assert marked == []


def test_every_rule_that_is_switched_off_is_named_and_has_its_reason_on_the_line() -> None:
    silent = [
        f"{path}:{number}: {line.strip()}"
        for path in python()
        if path.parts[:2] != HERE.parts
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1)
        if lacks_reason(line)
    ]
    assert silent == []


@pytest.mark.parametrize(
    ("line", "lacking"),
    [
        ("x = 1  # noqa", True),
        ("x = 1  # noqa: S608", True),
        ("x = 1  # noqa: S608  # composed from constants", False),
        ("x = 1  # noqa: S608, S603  # composed from constants", False),
        ("x = 1  # noqa: S608  (composed from constants)", False),
        ("x = 1  # type: ignore", True),
        ("x = 1  # type: ignore[misc]", True),
        ("x = 1  # type: ignore[misc]  # the library is untyped", False),
        ("x = 1  # pragma: no cover", True),
        ("x = 1  # a comment", False),
        ("x = [1]  # fmt: skip", False),
    ],
)
def test_the_check_of_reasons_can_fail(line: str, lacking: bool) -> None:
    assert lacks_reason(line) is lacking


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{name.name}" for name in node.names}
    return found


def test_contracts_import_neither_django_nor_a_database_and_read_their_annotations_at_once() -> None:
    forbidden = {"django", "psycopg", "pgtrigger", "celery", "redis", "structlog"}
    modules = contract_modules(ROOT)
    assert len(modules) > 15
    for module in modules:
        imported = _imports(Path(*module.split(".")).with_suffix(".py"))
        assert not {name.partition(".")[0] for name in imported} & forbidden, module
        assert "__future__.annotations" not in imported, module


def test_no_signal_steers_the_flow_and_no_model_overrides_save() -> None:
    for path in python(below=ROOMS):
        imported = _imports(path)
        steering = {"django.dispatch.receiver", "django.dispatch.Signal", "django.db.models.signals"}
        assert not imported & steering, path
        if "models" in path.parts or path.name == "models.py":
            tree = ast.parse((ROOT / path).read_text())
            methods = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
            assert not methods & {"save", "delete", "save_base"}, path
            assert "django.contrib.contenttypes.fields.GenericForeignKey" not in imported, path


def test_tests_neither_mock_nor_sleep() -> None:
    for path in python(below=("tests",)):
        assert not _imports(path) & {"unittest.mock", "mock"}, path
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            # Helpers may poll other processes until a deadline; a test says what it waits for.
            assert called != "time.sleep" or not path.name.startswith("test_"), f"{path}:{getattr(node, 'lineno', 0)}"
