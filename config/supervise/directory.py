"""One supervisor per state directory: its lock, what it says about itself, and what a killed one left running."""

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from config.locks import DirectoryLock
from config.private_file import write_private
from config.processes import end_left_over, kill_session
from config.supervise.refused import Refused


@dataclass(frozen=True, slots=True)
class Record:
    """What `supervisor.json` says about the supervisor of a state directory."""

    pid: int
    url: str
    children: dict[str, int]
    """Process ids by program name."""


def take_state_directory(state: Path) -> DirectoryLock:
    """The lock of the state directory. Raises `Refused` with process and URL if another supervisor holds it."""
    try:
        state.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(
            f"STATE_DIR={state} can not be used: {error.strerror}. Name a directory that you may write."
        ) from None
    lock = DirectoryLock(state / "supervisor.lock")
    if lock.acquire():
        return lock
    record = read_record(state)
    where = f" It serves {record.url}." if record else " It is still starting."
    raise Refused(
        f"Process {lock.holder()} already runs on {state}.{where}\n"
        f"Stop it with Ctrl-C or `kill {lock.holder()}`, or run a second one beside it:\n"
        f"  STATE_DIR=/some/other/directory WEB_PORT=8001 make up"
    )


def write_record(state: Path, *, url: str, children: Mapping[str, int]) -> None:
    """Say who runs on this state directory, for a second start and for the one after a crash."""
    record = Record(pid=os.getpid(), url=url, children=dict(children))
    write_private(state / "supervisor.json", json.dumps(asdict(record)))


def read_record(state: Path) -> Record | None:
    """The last record, None if there is none."""
    try:
        return Record(**json.loads((state / "supervisor.json").read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        # Cut off while it was written: what it named is found by the next start's own marks, or ended with its parent.
        return None


def end_left_overs(state: Path) -> tuple[str, ...]:
    """End programs that a killed supervisor of this state directory left running; their names, usually none."""
    record = read_record(state)
    if record is None:
        return ()
    ended = []
    for name, pid in record.children.items():
        if end_left_over(pid=pid, mark=program_mark(name), steps=((signal.SIGTERM, 10.0),)):
            kill_session(pid)
            ended.append(name)
    (state / "supervisor.json").unlink(missing_ok=True)
    return tuple(ended)


def program_mark(name: str) -> str:
    """What the command line of a supervised program certainly holds."""
    return "config.asgi:application" if name == "web" else "config.celery"


def forget_record(state: Path) -> None:
    """Take the record away after an orderly end."""
    (state / "supervisor.json").unlink(missing_ok=True)
