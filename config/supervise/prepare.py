"""What every start prepares before the programs run: servers, databases, roles, static files, a login."""

import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from config import environment
from config.embedded import Embedded
from config.owners import OWNERS
from config.private_file import write_private
from config.processes import kill_session, log_tail, spawn
from config.supervise.stopping import StopRequest

ROOT = Path(__file__).resolve().parent.parent.parent
OPERATOR = "operator"


class StepFailed(RuntimeError):
    """A preparing command failed; the end of its output is shown."""


def needs_embedded(variables: Mapping[str, str]) -> bool:
    """Whether any owner's database or the broker is not given by its URL."""
    names = [f"DATABASE_URL_{owner.name.upper()}" for owner in OWNERS if owner.name != "telemetry"]
    telemetry = variables.get("DATABASE_URL_TELEMETRY") or variables.get("OTLP_TS_HOST")
    return not (telemetry and all(variables.get(name) for name in [*names, "REDIS_URL"]))


def embedded_servers(*, state: Path) -> Embedded:
    """The embedded servers, on `POSTGRES_PORT` and `VALKEY_PORT`, or on free ports where these are 0."""
    return Embedded(
        state=state,
        postgres_port=environment.integer("POSTGRES_PORT", 0, low=0, high=65535) or None,
        valkey_port=environment.integer("VALKEY_PORT", 0, low=0, high=65535) or None,
    )


def operator_password(state: Path) -> str:
    """The password of the local operator login: made once per state directory, readable by its owner only."""
    path = state / "operator.password"
    if not path.exists():
        write_private(path, secrets.token_urlsafe(12) + "\n")
    return path.read_text().strip()


@dataclass(frozen=True, slots=True)
class Steps:
    """Runs `manage.py` commands in the environment of the programs."""

    environment: Mapping[str, str]
    log: Path
    stop: StopRequest

    def run(self, *arguments: str, extra: Mapping[str, str] | None = None) -> None:
        """Run one command, its output in the log. Raises `StepFailed` with the end of it, `Stopped` on a signal."""
        start = self.log.stat().st_size if self.log.exists() else 0
        child = self._start(arguments, {**self.environment, **(extra or {})}, log=self.log, terminal=False)
        if self._finish(child, self.stop.pause):
            raise StepFailed(_failure(arguments, child.returncode, log_tail(self.log, since=start)))

    def show(self, *arguments: str, look: Callable[[], None], may_fail: bool = False) -> str:
        """Run one command with its progress on the terminal, `look` at the programs meanwhile; its standard output."""
        output = self.log.with_name(f"{arguments[0]}.out")
        output.unlink(missing_ok=True)
        quietly = {"LOG_LEVEL": "WARNING", **self.environment}
        child = self._start(arguments, quietly, log=output, terminal=True)
        if self._finish(child, look) and not may_fail:
            raise StepFailed(_failure(arguments, child.returncode, log_tail(output)))
        return output.read_text()

    def _start(
        self, arguments: Sequence[str], environment: Mapping[str, str], *, log: Path, terminal: bool
    ) -> subprocess.Popen[bytes]:
        return spawn(
            command=[sys.executable, "manage.py", *arguments],
            log=log,
            errors_to_terminal=terminal,
            directory=ROOT,
            environment=environment,
        )

    def _finish(self, child: subprocess.Popen[bytes], pause: Callable[[], None]) -> int:
        try:
            while child.poll() is None:
                pause()
        finally:
            kill_session(child.pid)
            child.wait()
        return child.returncode


def _failure(arguments: Sequence[str], code: int, output: str) -> str:
    return f"`manage.py {' '.join(arguments)}` failed with code {code}:\n{output}"


def prepare(*, steps: Steps, password: str, say: Callable[[str], None]) -> None:
    """Bring databases, static files and the operator login up to date; repeating it changes nothing."""
    began = time.monotonic()
    say("Preparing the databases of all owners …")
    steps.run("migrate_owners")
    steps.run("operator", OPERATOR, extra={"OPERATOR_PASSWORD": password})
    steps.run("collectstatic", "--noinput", "--verbosity", "0")
    say(f"Databases, static files and login are ready after {time.monotonic() - began:.1f} s.")
