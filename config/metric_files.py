"""The files in which the processes of one machine keep their counters, so that any of them can answer a scrape.

prometheus_client writes one memory-mapped file per process and type into `PROMETHEUS_MULTIPROC_DIR`, which a supervisor
sets before anything starts. Here they are emptied at a start, and what dead processes left is folded into one file per
type, so that totals never fall and restarts leave no litter behind.

How it can be wrong: a directory serves processes that share process ids (one machine, or one container); a crash in the
instant between writing the sum and removing its parts counts these twice.
"""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, mmap_dict, multiprocess
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

MmapedDict: Any = mmap_dict.MmapedDict
MultiProcessCollector: Any = multiprocess.MultiProcessCollector
"""The library's own reader and writer of these files; it gives them no types."""

FOLDED = 0
"""Stands for the process id in the name of a folded file; no process has it."""
ADDED = ("counter", "histogram")
LARGEST = ("gauge_max",)
LIVING = ("gauge_livesum",)
"""File kinds by what becomes of a dead process's values: added up, the largest kept, or dropped with the process."""


def directory() -> Path | None:
    """Where the files are, None if every process keeps its counters to itself."""
    name = os.environ.get("PROMETHEUS_MULTIPROC_DIR", "").strip()
    return Path(name) if name else None


def start_empty(place: Path) -> None:
    """Make the directory, without the files of an earlier run. Only before the processes start."""
    place.mkdir(parents=True, exist_ok=True)
    for path in place.glob("*.db"):
        path.unlink(missing_ok=True)


class LivingAndDead(Collector):
    """The sum over all processes of this machine, dead ones included, for a Prometheus registry."""

    def __init__(self, *, place: Path, registry: CollectorRegistry) -> None:
        self._place = place
        registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that registering reads no file."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Fold what dead processes left, then add everything up."""
        with _alone(self._place):
            fold(self._place)
            return list(MultiProcessCollector(None, path=str(self._place)).collect())


def fold(place: Path) -> None:
    """Put the values of dead processes into one file per kind, and remove their files."""
    for kind in ADDED:
        _fold(place, kind, lambda one, other: one + other)
    for kind in LARGEST:
        _fold(place, kind, max)
    for kind in LIVING:
        for path in _of_the_dead(place, kind):
            path.unlink(missing_ok=True)


def _fold(place: Path, kind: str, join: Callable[[float, float], float]) -> None:
    dead = _of_the_dead(place, kind)
    if not dead:
        return
    target = place / f"{kind}_{FOLDED}.db"
    values: dict[str, tuple[float, float]] = {}
    for path in [target, *dead]:
        if path.exists():
            for key, value, written, _ in MmapedDict.read_all_values_from_file(str(path)):
                before = values.get(key)
                values[key] = (join(before[0], value), max(before[1], written)) if before else (value, written)
    fresh = place / f".{kind}.new"
    fresh.unlink(missing_ok=True)
    written_file = MmapedDict(str(fresh))
    for key, (value, written) in values.items():
        written_file.write_value(key, value, written)
    written_file.close()
    fresh.replace(target)
    for path in dead:
        path.unlink(missing_ok=True)


def _of_the_dead(place: Path, kind: str) -> list[Path]:
    found = []
    for path in place.glob(f"{kind}_*.db"):
        number = path.stem.rpartition("_")[2]
        if number.isdigit() and int(number) != FOLDED and not _lives(int(number)):
            found.append(path)
    return found


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """One reader at a time: folding takes files away that another reader has just listed."""
    with (place / "readers.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
