"""Child: one real dispatcher of core drains until nothing is due, as `manage.py dispatch --once` does."""

import argparse
import os
import resource
import sys
import threading
import time
from pathlib import Path

import django

from tests.bench import children, sampler


class ResidentMemory:
    """Notes the resident memory of this process twice a second, in MiB."""

    def __init__(self, *, watch: bool) -> None:
        self.seen: list[float] = []
        self._stop = threading.Event()
        if watch:
            threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        while not self._stop.wait(0.5):
            self.seen.append(int(Path("/proc/self/statm").read_text().split()[1]) * page / 2**20)

    def stop(self) -> list[float]:
        """End the watch; what was seen."""
        self._stop.set()
        return self.seen


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true", help="Sample where the drain spends its processor time.")
    parser.add_argument("--watch-memory", action="store_true", help="Note the resident memory while it drains.")
    chosen = parser.parse_args()
    sampled = chosen.sample
    django.setup()
    from django.utils.module_loading import import_string

    from config.owners import consumers, owner_named
    from outbox import collector
    from outbox.dispatch import Dispatcher

    owner = owner_named("core")
    for _, consumer in consumers():  # loaded with the first delivery otherwise
        if consumer.handler:
            import_string(consumer.handler)
    collector.settle_in()  # as the command does, and every worker
    from django.db import connections

    for alias in (owner.alias, owner.dispatch_alias):
        connections[alias].ensure_connection()
    with Dispatcher(owner) as dispatcher:
        children.wait_for_start()
        before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        if sampled:
            sampler.start()
        resident = ResidentMemory(watch=chosen.watch_memory)
        drained = dispatcher.drain()
        samples = sampler.stop() if sampled else {}
        seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    children.answer(
        acknowledged=drained.acknowledged,
        retried=drained.retried,
        quarantined=drained.quarantined,
        batches=drained.batches,
        samples=samples,
        resident_mib=resident.stop(),
        seconds=seconds,
        cpu=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        peak_mib=after.ru_maxrss / (1024 if sys.platform == "linux" else 1024 * 1024),
    )


if __name__ == "__main__":
    main()
