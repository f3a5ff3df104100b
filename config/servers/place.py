"""Where the embedded servers keep their data, and as which account they and their preparations run."""

import os
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path


class ServerFailed(RuntimeError):
    """A server did not start. Transient or permanent as the last log lines in the message say."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where servers keep their data and logs, and as which account they run (None: the present one)."""

    home: Path
    log: Path
    user: int | None
    group: int | None

    def give(self, path: Path) -> None:
        """Hand a path to the account of the servers."""
        if self.user is not None and self.group is not None:
            os.chown(path, self.user, self.group)

    def directory(self, name: str) -> Path:
        """A private directory that the servers own."""
        path = self.home / name
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.give(path)
        return path

    def may_run(self, program: Path) -> bool:
        """Whether the account of the servers can reach and execute this program (or pass this directory)."""
        if self.user is None:
            return os.access(program, os.X_OK)
        probe = subprocess.run(  # noqa: S603  (a fixed command)
            ["/usr/bin/test", "-x", program],
            cwd="/",
            check=False,
            user=self.user,
            group=self.group,
            extra_groups=self._groups(),
        )
        return probe.returncode == 0

    def run(self, *command: str | Path) -> None:
        """Run a short command as that account. Raises `ServerFailed` with its output."""
        done = subprocess.run(  # noqa: S603  (the commands of this module)
            [str(part) for part in command],
            cwd=self.home,
            env=clean_environment(),
            capture_output=True,
            text=True,
            check=False,
            user=self.user,
            group=self.group,
            extra_groups=self._groups(),
        )
        if done.returncode:
            raise ServerFailed(f"{Path(command[0]).name} failed with code {done.returncode}: {done.stderr.strip()}")

    def _groups(self) -> list[int] | None:
        return None if self.user is None else []


def package_directory(name: str) -> Path:
    """The directory of an installed package, found without importing it."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ServerFailed(f"The package {name} is not installed. Run make, or install requirements.txt.")
    return Path(spec.submodule_search_locations[0])


def clean_environment() -> dict[str, str]:
    """Nothing of the caller's PG* or locale variables reaches a server."""
    return {"PATH": os.environ.get("PATH", os.defpath), "TZ": "UTC"}
