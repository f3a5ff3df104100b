"""The web application of `config.asgi`, in which a test decides what happens at a named step.

`WEB_STEPS` is a directory. A file in it names a step, and whoever reaches that step first removes the file and

- `kill`: kills its process with -9;
- `fail`: meets a database error;
- `pause`: leaves a file `reached`, and goes on once there is a file `go`.
"""

import os
import signal
import time
from pathlib import Path

from django.db import OperationalError

from config.asgi import application
from outbox import steps

PLACE = Path(os.environ["WEB_STEPS"])
PATIENCE_SECONDS = 60.0
__all__ = ["application"]


def _takes(verb: str, step: str) -> bool:
    """Whether this process is the one that the file is for."""
    try:
        if (PLACE / verb).read_text() != step:
            return False
        (PLACE / verb).unlink()
    except FileNotFoundError:
        return False
    return True


def at_step(step: str) -> None:
    """What the test asked for."""
    if _takes("kill", step):
        os.kill(os.getpid(), signal.SIGKILL)
    if _takes("fail", step):
        raise OperationalError(f"lost at {step}")
    if _takes("pause", step):
        (PLACE / "reached").touch()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (PLACE / "go").exists() and time.monotonic() < deadline:
            time.sleep(0.01)


steps.hook = at_step
