"""Supervision of programs: restart, giving up, order and bounds of the end. Real processes, small delays."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.supervise.programs import Program
from config.supervise.watch import CannotLive, Patience, Watch
from tests.ground.waiting import gone, until

QUICK = Patience(first_delay=0.01, longest_delay=0.05, after_kill=0.01, long_enough=60.0, short_lives=3)
STAYS = "import time; print('stays', flush=True); time.sleep(600)"
FAILS = "print('the reason'); raise SystemExit(3)"
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGQUIT, signal.SIG_IGN)
print('stubborn', flush=True)
time.sleep(600)
"""
WITH_CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
print(child.pid, flush=True)
time.sleep(600)
"""
LAST_WORD = """
import signal, sys, time
def leave(*_):
    with open('order', 'a') as order:
        order.write(sys.argv[1] + ' ')
    raise SystemExit
signal.signal(signal.SIGTERM, leave)
print('up', flush=True)
time.sleep(600)
"""


class Watched:
    """A watch over Python one-liners in a directory of their own, and what it reported."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.reports: list[str] = []
        self.watches: list[Watch] = []

    def start(self, **programs: str) -> Watch:
        watch = Watch(
            programs=[Program(name, (sys.executable, "-c", code, name)) for name, code in programs.items()],
            directory=self.directory,
            log=self.directory,
            environment=dict(os.environ),
            report=self.reports.append,
            patience=QUICK,
        )
        self.watches.append(watch)
        watch.start()
        return watch

    def says(self, name: str) -> str:
        log = self.directory / f"{name}.log"
        return log.read_text() if log.exists() else ""


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(tmp_path)
    yield watched
    for watch in watched.watches:
        watch.stop(hurry=lambda: True)


def test_a_killed_program_starts_again_and_the_kill_never_counts_against_it(watched: Watched) -> None:
    watch = watched.start(program=STAYS)
    for kills in range(1, 6):
        until(lambda kills=kills: watched.says("program").count("stays") == kills)  # type: ignore[misc]  # bound early
        killed = watch.pids()["program"]
        os.kill(killed, signal.SIGKILL)

        def again(killed: int = killed) -> bool:
            watch.look()
            return watch.pids().get("program", killed) != killed

        until(again)
    assert watched.reports == ["program was killed; it starts again."] * 5


def test_a_program_that_cannot_live_is_given_up_with_its_last_words(watched: Watched) -> None:
    watch = watched.start(neighbour=STAYS, broken=FAILS)

    def look_forever() -> bool:
        watch.look()
        return False

    with pytest.raises(CannotLive, match=r"broken ended 3 times in a row(.|\n)*code 3(.|\n)*the reason"):
        until(look_forever)
    assert sum("broken ended with code 3" in report for report in watched.reports) == 2


def test_programs_end_in_reverse_order(watched: Watched) -> None:
    watch = watched.start(first=LAST_WORD, second=LAST_WORD, third=LAST_WORD)
    until(lambda: all(watched.says(name) for name in ("first", "second", "third")))
    watch.stop()
    assert (watched.directory / "order").read_text().split() == ["third", "second", "first"]
    assert watch.pids() == {}


def test_a_program_that_ignores_every_signal_is_killed_at_once_when_there_is_hurry(watched: Watched) -> None:
    watch = watched.start(stubborn=STUBBORN)
    until(lambda: watched.says("stubborn"))
    pid = watch.pids()["stubborn"]
    asked = iter([False, False, True])
    watch.stop(hurry=lambda: next(asked, True))
    assert gone(pid)


def test_grandchildren_of_a_killed_program_end_with_it(watched: Watched) -> None:
    watch = watched.start(parent=WITH_CHILD)
    until(lambda: watched.says("parent"))
    grandchild = int(watched.says("parent").split()[0])
    os.kill(watch.pids()["parent"], signal.SIGKILL)

    def again() -> bool:
        watch.look()
        return len(watched.says("parent").split()) > 1

    until(again)
    until(lambda: gone(grandchild))
