"""The walls between rooms stand, and each of their checks can fail."""

import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from tests.architecture.walls import OnlyContracts
from tests.conftest import ROOT


def test_the_walls_stand() -> None:
    done = _lint(ROOT)
    assert done.returncode == 0, done.stdout
    assert "4 kept, 0 broken" in done.stdout


def _lint(root: Path) -> subprocess.CompletedProcess[str]:
    lint = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [lint, "--no-logo", "--no-cache"], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("path", "line", "wall"),
    [
        ("operations/peek.py", "import billing.ledger.post", "Of another owner only its contracts are imported"),
        ("upstream/peek.py", "import billing.pricing.contracts", "Imports go downwards only"),
        ("outbox/peek.py", "import upstream.admission.contracts", "Imports go downwards only"),
        ("attachments/peek.py", "import operations.projector.contracts", "Imports go downwards only"),
        ("outbox/contracts/peek.py", "import django", "Contracts know neither Django nor a database"),
        ("billing/pricing/contracts/peek.py", "import psycopg", "Contracts know neither Django nor a database"),
        ("metering/peek.py", "import config.settings", "The roof of the configuration is imported by nobody"),
    ],
)
def test_each_wall_can_fail(tmp_path: Path, path: str, line: str, wall: str) -> None:
    (tmp_path / ".importlinter").write_text((ROOT / ".importlinter").read_text())
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    files = (
        "config/settings.py", "config/urls.py", "config/celery.py", "config/asgi.py", "outbox/contracts/a.py",
        "upstream/admission/contracts.py", "metering/a.py", "billing/ledger/post.py", "billing/pricing/contracts/a.py",
        "operations/projector/contracts.py", "attachments/a.py",
    )  # fmt: skip
    for file in (*files, path):
        place = tmp_path / file
        place.parent.mkdir(parents=True, exist_ok=True)
        for folder in place.relative_to(tmp_path).parents:
            if folder.parts:
                (tmp_path / folder / "__init__.py").touch()
        place.write_text("")
    assert _lint(tmp_path).returncode == 0
    (tmp_path / path).write_text(line + "\n")
    done = _lint(tmp_path)
    assert done.returncode == 1
    assert [row for row in done.stdout.splitlines() if row.startswith(wall) and row.endswith("BROKEN")], done.stdout


def test_two_rooms_see_each_others_contracts_and_hooks_only() -> None:
    graph = grimp.ImportGraph()
    allowed = ("b.contracts", "b.pricing.contracts.price", "b.commercial.hooks", "b.pricing.contract_examples")
    for module in (*allowed, "a.reads", "b.models", "ground"):
        graph.add_module(module)
    for imported in (*allowed, "ground"):
        graph.add_import(importer="a.reads", imported=imported)
    contract = OnlyContracts(
        name="walls",
        session_options={},
        contract_options={"rooms": ["a", "b"], "importable": ["b.commercial.hooks"]},
    )
    assert contract.check(graph, verbose=False).kept
    graph.add_import(importer="a.reads", imported="b.models")
    found = contract.check(graph, verbose=False)
    assert not found.kept
    assert found.metadata["broken"] == ["a.reads imports b.models"]
