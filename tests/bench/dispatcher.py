"""Child: one real dispatcher of core drains until nothing is due, as `manage.py dispatch --once` does."""

import argparse
import cProfile
import os
import resource
import sys
import time

import django

from tests.bench import children


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--profile", help="Write a cProfile of the drain to this file and the process id.")
    profile = parser.parse_args().profile
    django.setup()
    from config.owners import owner_named
    from operations.projector.consumer import consume
    from outbox.dispatch import Dispatcher, bound_destinations

    assert consume
    assert bound_destinations()
    owner = owner_named("core")
    from django.db import connections

    for alias in (owner.alias, owner.dispatch_alias):
        connections[alias].ensure_connection()
    profiler = cProfile.Profile(time.process_time) if profile else None
    with Dispatcher(owner) as dispatcher:
        children.wait_for_start()
        before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        if profiler:
            profiler.enable()
        drained = dispatcher.drain()
        if profiler:
            profiler.disable()
            profiler.dump_stats(f"{profile}.{os.getpid()}")
        seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    children.answer(
        acknowledged=drained.acknowledged,
        retried=drained.retried,
        quarantined=drained.quarantined,
        batches=drained.batches,
        seconds=seconds,
        cpu=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        peak_mib=after.ru_maxrss / (1024 if sys.platform == "linux" else 1024 * 1024),
    )


if __name__ == "__main__":
    main()
