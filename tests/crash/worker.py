"""A real dispatcher process in which a test decides what happens at a named step.

    python -m tests.crash.worker dispatch --owner core --poll 0.02

runs that `manage.py` command; the environment says what the process does to itself (`CRASH_<VERB>=<step>`):

- `CRASH_KILL`: kill -9 of itself, the first time the step is reached;
- `CRASH_STOP`: SIGSTOP of itself, the first time;
- `CRASH_PAUSE`: print `reached <step>` and go on when a line arrives on its standard input, the first time;
- `CRASH_SLOW=<step>:<seconds>`: take that long, the first time;
- `CRASH_ROUNDS=<number>`: run the command so often, one after the other, each time as if it were the first;
- `CRASH_CLOCK=<seconds>`: every clock that Python shows the application is off by so much from the beginning.
"""

import datetime
import os
import signal
import sys
import time
from collections.abc import Callable


def shift_clocks(seconds: float) -> None:
    """Move the wall clock of this process; the monotonic clock and the database's stay."""
    real_time = time.time

    class Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> "Shifted":
            return cls.fromtimestamp(real_time() + seconds, tz)

        @classmethod
        def utcnow(cls) -> "Shifted":
            return cls.now(datetime.UTC).replace(tzinfo=None)

    time.time = lambda: real_time() + seconds
    time.time_ns = lambda: int((real_time() + seconds) * 1e9)
    datetime.datetime = Shifted  # type: ignore[misc]  # the point of it


def at_steps() -> Callable[[str], None]:
    """The hook: what the environment asks for, once per verb."""
    wanted = {verb: os.environ.get(f"CRASH_{verb}", "") for verb in ("KILL", "STOP", "PAUSE", "SLOW")}
    slow_step, _, seconds = wanted["SLOW"].partition(":")

    def hook(step: str) -> None:
        if wanted["KILL"] == step:
            os.kill(os.getpid(), signal.SIGKILL)
        if wanted["STOP"] == step:
            wanted["STOP"] = ""
            os.kill(os.getpid(), signal.SIGSTOP)
        if wanted["PAUSE"] == step:
            wanted["PAUSE"] = ""
            sys.stdout.write(f"reached {step}\n")
            sys.stdout.flush()
            sys.stdin.readline()
        if wanted["SLOW"] and slow_step == step:
            wanted["SLOW"] = ""
            time.sleep(float(seconds))

    return hook


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if offset := os.environ.get("CRASH_CLOCK"):
        shift_clocks(float(offset))
    import django

    django.setup()
    from django.core.management import call_command

    from outbox import drain, steps

    for _ in range(int(os.environ.get("CRASH_ROUNDS", "1"))):
        drain.forget()
        steps.hook = at_steps()
        call_command(*sys.argv[1:])


if __name__ == "__main__":
    main()
