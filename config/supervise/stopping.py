"""Ctrl-C, SIGTERM and a closed terminal as one request to stop, and waiting that notices it."""

import signal
import time
from types import FrameType

POLL_SECONDS = 0.1


class Stopped(Exception):
    """The user asked to stop."""


class StopRequest:
    """Takes over the signals once; `check` raises `Stopped` after the first of them."""

    def __init__(self) -> None:
        self.count = 0
        for wanted in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(wanted, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1

    def check(self) -> None:
        """Raise `Stopped` if a signal came."""
        if self.count:
            raise Stopped

    def pause(self) -> None:
        """Sleep for one poll, then `check`."""
        time.sleep(POLL_SECONDS)
        self.check()
