"""Child processes of a measurement: each gets ready, waits for the common start, works, and answers with one JSON."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True)
class Ran:
    """What a set of children came to."""

    seconds: float
    """From the common start to the last answer."""
    answers: list[dict[str, Any]]

    def total(self, name: str) -> float:
        """The sum of one figure over the children."""
        return float(sum(answer[name] for answer in self.answers))


def run(
    work: str,
    *arguments: str,
    prefix: str,
    processes: int = 1,
    python: str = sys.executable,
    env: dict[str, str] | None = None,
    different: Sequence[Sequence[str]] = (),
) -> Ran:
    """Run `tests.bench.<work>` in children on the databases of `prefix`; `different` adds arguments to each."""
    environment = {**os.environ, "DATABASE_NAME_PREFIX": prefix, **(env or {})}
    children = [
        subprocess.Popen(
            [python, "-m", f"tests.bench.{work}", *arguments, *(different[index] if different else ())],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for index in range(processes)
    ]
    try:
        for child in children:
            _line(child, "ready")
        started = time.perf_counter()
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        answers = [json.loads(_line(child)) for child in children]
        seconds = time.perf_counter() - started
    finally:
        for child in children:
            if child.stdin is not None:
                child.stdin.close()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
    return Ran(seconds, answers)


def _line(child: subprocess.Popen[str], expected: str | None = None) -> str:
    assert child.stdout is not None
    line = child.stdout.readline().strip()
    if not line or (expected is not None and line != expected):
        raise RuntimeError(f"A child of the benchmark said {line!r} and ended with {child.wait(10)}; see above.")
    return line


def manage(*command: str, env: dict[str, str]) -> str:
    """What a command of `manage.py` prints. Raises `RuntimeError` with the end of what it says when it fails."""
    done = subprocess.run(
        [sys.executable, "manage.py", *command], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"manage.py {' '.join(command)}: {done.stderr.strip()[-500:]}")
    return done.stdout


def wait_for_start() -> None:
    """In a child: say that it is ready and wait for the common start."""
    print("ready", flush=True)
    if not sys.stdin.readline():
        raise SystemExit("the benchmark gave up")


def answer(**figures: Any) -> None:
    """In a child: the one answer."""
    print(json.dumps(figures), flush=True)
