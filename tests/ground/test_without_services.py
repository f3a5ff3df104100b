"""Commands that find no services, and a demo that is asked for nonsense, say what to do and show no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def _run(*command: str, state: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "STATE_DIR": str(state)}
    for name in [name for name in environment if name.startswith("DATABASE_") or name == "REDIS_URL"]:
        del environment[name]
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("command", ["replay_trace", "await_drained", "sweep_admissions"])
def test_a_command_without_services_names_the_way_to_start_them(command: str, tmp_path: Path) -> None:
    done = _run("manage.py", command, state=tmp_path)
    assert done.returncode == 1
    assert "does not answer" in done.stderr
    assert "make up" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_trace_that_is_no_file_is_not_read(tmp_path: Path) -> None:
    done = _run("manage.py", "replay_trace", "--trace", "/dev/zero", state=tmp_path)
    assert done.returncode == 1
    assert "is no file" in done.stderr


@pytest.mark.parametrize("limit", ["abc", "0", "-1", "1e3", "99999999999999999999"])
def test_a_demo_of_an_impossible_number_of_rows_starts_nothing(limit: str, tmp_path: Path) -> None:
    done = _run("-m", "config.supervisor", "demo", f"--limit={limit}", state=tmp_path)
    assert done.returncode == 1
    assert f"LIMIT={limit}" in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
