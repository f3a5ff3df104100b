"""The whole system as a process of its own, the way `make up` runs it."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from config.embedded import Services
from tests.ground.conftest import ROOT, clean_environment
from tests.ground.waiting import gone, until


@dataclass
class System:
    """One supervisor on one state directory."""

    state: Path
    variables: dict[str, str] = field(default_factory=dict)
    mode: str = "up"
    process: subprocess.Popen[bytes] | None = None

    @property
    def output(self) -> str:
        path = self.state.with_name(f"{self.state.name}.output")
        return path.read_text() if path.exists() else ""

    def start(self) -> None:
        """Start the supervisor; its output is appended to a file beside the state directory."""
        with self.state.with_name(f"{self.state.name}.output").open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "config.supervisor", self.mode],
                cwd=ROOT,
                env=clean_environment(
                    STATE_DIR=str(self.state), **{"WEB_PORT": "0", "OTLP_PORT": "0", **self.variables}
                ),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def await_ready(self) -> None:
        """Wait until it says that it is ready, or fail with what it said instead."""
        process = self.process
        assert process is not None
        ready = self.output.count("Ready: ") + 1
        until(lambda: self.output.count("Ready: ") == ready or process.poll() is not None, patience=180)
        assert process.poll() is None, self.output

    @property
    def record(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.state / "supervisor.json").read_text())
        return found

    @property
    def url(self) -> str:
        return str(self.record["url"])

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=30) as answer:
            text: str = answer.read().decode()
        return text

    def services(self) -> Services:
        return Services.from_json((self.state / "services.json").read_text())

    def family(self) -> list[int]:
        """Every process below the supervisor, at any depth."""
        assert self.process is not None
        return descendants(self.process.pid)

    def interrupt(self) -> int:
        """Ctrl-C; the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)

    def kill(self) -> None:
        """kill -9 of the supervisor alone."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def ensure_ended(self) -> None:
        """Leave nothing behind, whatever a test did."""
        if self.process is not None and self.process.poll() is None:
            family = self.family()
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                for pid in [self.process.pid, *family]:
                    if not gone(pid):
                        os.kill(pid, signal.SIGKILL)
        self.state.with_name(f"{self.state.name}.output").unlink(missing_ok=True)


def descendants(pid: int) -> list[int]:
    """Every living process below `pid`."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
    found: list[int] = []
    level = {pid}
    while level:
        level = {child for child, parent in parents.items() if parent in level}
        found += sorted(level)
    return found
