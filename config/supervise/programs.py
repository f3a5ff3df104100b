"""The programs that are supervised, read from `deploy/Procfile`, so that there is one list of processes."""

import re
import shlex
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class ProcfileInvalid(ValueError):
    """A line of the Procfile is not `name: command`, or names a variable that has neither value nor default."""


@dataclass(frozen=True, slots=True)
class Program:
    """One line of the Procfile with its variables filled in."""

    name: str
    command: tuple[str, ...]

    @property
    def on_parent_death(self) -> signal.Signals:
        """What the kernel sends when the supervisor is killed.

        Celery's pool ends with its parent, so it may be killed at once, and its leases expire. The web server has to
        be told, because it ends its worker processes itself.
        """
        return signal.SIGKILL if "celery" in self.command else signal.SIGTERM


def read_procfile(*, path: Path, environment: Mapping[str, str]) -> tuple[Program, ...]:
    """The programs in the order in which they start. Raises `ProcfileInvalid` with the line number."""
    lines = path.read_text().splitlines()
    return tuple(
        _program(line, environment, where=f"{path}, line {number}")
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.startswith("#")
    )


def _program(line: str, environment: Mapping[str, str], *, where: str) -> Program:
    name, colon, command = line.partition(":")
    if not colon or not name.isidentifier() or not command.strip():
        raise ProcfileInvalid(f"{where}: write `name: command`.")
    words = (_VARIABLE.sub(lambda found: _value(found, environment, where), word) for word in shlex.split(command))
    return Program(name=name, command=tuple(words))


def _value(found: re.Match[str], environment: Mapping[str, str], where: str) -> str:
    value = environment.get(found[1]) or found[2]
    if value is None:
        raise ProcfileInvalid(f"{where}: {found[1]} has no value. Set it in the environment.")
    return value
