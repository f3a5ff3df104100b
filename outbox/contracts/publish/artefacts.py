"""Everything that is published about contracts, what of it is stale, and how it is written anew.

Contracts are code; JSON Schema, TypeScript, goldens and the page are made from them and stand beside the code, so that
a change of a contract shows as a change of files, and nobody publishes by accident.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from outbox.contracts.publish.catalogue import Published, catalogue
from outbox.contracts.publish.goldens import golden_files
from outbox.contracts.publish.json_schema import schema_bytes
from outbox.contracts.publish.page import page
from outbox.contracts.publish.typescript import TOOL, generate, is_current, tool_version

SCHEMAS, TYPESCRIPT, GOLDENS = Path("docs/contracts/schema"), Path("docs/contracts/typescript"), Path("tests/golden")
PAGE = Path("docs/contracts/README.md")


@dataclass(frozen=True, slots=True)
class Stale:
    """One file that does not say what the contracts say."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def stale(root: Path) -> tuple[Stale, ...]:
    """What `write` would change, in path order; changes nothing. Raises `Unpublishable`."""
    published = catalogue(root)
    expected = _expected(root, published)
    found = [Stale(path, reason) for path, data in expected.items() if (reason := _difference(root / path, data))]
    found += [Stale(path, "no contract of today has it") for path in _surplus(root, published, expected)]
    found += [Stale(path, "not made from the schema of today") for path in _stale_types(root, published)]
    return tuple(sorted(found, key=lambda item: item.path))


def write(root: Path) -> tuple[Stale, ...]:
    """Make everything current; answers what was stale. Raises `Unpublishable`, having written all but TypeScript."""
    published, before = catalogue(root), stale(root)
    expected = _expected(root, published)
    for path in _surplus(root, published, expected):
        (root / path).unlink()
    for path, data in expected.items():
        _put(root / path, data)
    wanted = _stale_types(root, published)
    if wanted:
        schemas = {item.name: schema_bytes(item) for path, item in wanted.items()}
        made = generate(root, schemas)
        for path, item in wanted.items():
            _put(root / path, made[item.name])
    return before


def _expected(root: Path, published: tuple[Published, ...]) -> dict[Path, bytes]:
    files = {SCHEMAS / item.room / f"{item.name}.schema.json": schema_bytes(item) for item in published}
    for item in published:
        files |= {GOLDENS / item.room / name: data for name, data in golden_files(item)}
    files[PAGE] = page((root / PAGE).read_text(), published).encode()
    return files


def _difference(path: Path, data: bytes) -> str:
    if not path.exists():
        return "missing"
    return "" if path.read_bytes() == data else "differs from what the contract says"


def _types(published: tuple[Published, ...]) -> dict[Path, Published]:
    return {TYPESCRIPT / item.room / f"{item.name}.ts": item for item in published}


def _stale_types(root: Path, published: tuple[Published, ...]) -> dict[Path, Published]:
    tool = tool_version(root)
    return {
        path: item
        for path, item in _types(published).items()
        if not (root / path).exists()
        or not is_current((root / path).read_bytes(), schema=schema_bytes(item), tool=tool)
    }


def _surplus(root: Path, published: tuple[Published, ...], expected: dict[Path, bytes]) -> Iterator[Path]:
    known = expected.keys() | _types(published).keys()
    for folder, suffixes in ((SCHEMAS, {".json"}), (TYPESCRIPT, {".ts"}), (GOLDENS, {".json", ".sha256"})):
        for file in sorted((root / folder).rglob("*")):
            path = file.relative_to(root)
            if file.suffix in suffixes and TOOL not in path.parents and path not in known:
                yield path


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != data:
        path.write_bytes(data)
