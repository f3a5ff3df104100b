"""State directories of their own for tests that start and kill real servers."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.embedded import Embedded

ROOT = Path(__file__).resolve().parent.parent.parent
FOREIGN = ("DATABASE_", "REDIS_URL", "OTLP_TS_", "STATE_DIR", "WEB_", "POSTGRES_PORT", "VALKEY_PORT", "PYTEST_")


def clean_environment(**more: str) -> dict[str, str]:
    """The environment of a fresh terminal, without what the test run itself set."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, **more}


def open_directory() -> Path:
    """A new directory that any account may pass, as servers started by root run as another one."""
    path = Path(tempfile.mkdtemp(prefix="ground-", dir=tempfile.gettempdir()))
    path.chmod(0o755)
    return path


@pytest.fixture(scope="session")
def fresh_servers() -> Iterator[Path]:
    """A state directory whose servers were made once and are stopped; copied by `state`."""
    path = open_directory()
    with Embedded(state=path):
        pass
    yield path
    shutil.rmtree(path)


@pytest.fixture
def state(fresh_servers: Path) -> Iterator[Path]:
    """A state directory with servers that were stopped in good order."""
    path = open_directory()
    subprocess.run(["cp", "-a", f"{fresh_servers}/.", str(path)], check=True)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def empty_state() -> Iterator[Path]:
    """An empty state directory."""
    path = open_directory()
    yield path
    shutil.rmtree(path, ignore_errors=True)
