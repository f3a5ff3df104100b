"""`manage.py dispatch --owner NAME`: the drain loop without Celery, for benchmarks and emergencies."""

import signal
import time
from argparse import ArgumentParser
from typing import Any

import psycopg
import structlog
from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from config.owners import owner_named, producers
from outbox import collector, drain
from outbox.dispatch import Dispatcher, Drained

log = structlog.get_logger("outbox.dispatch")
LONGEST_BACKOFF_SECONDS = 10.0


class Command(BaseCommand):
    help = "Dispatch one owner's outbox in this process. SIGTERM and Ctrl-C drain it, then it exits."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--owner", required=True, choices=[owner.name for owner in producers()])
        parser.add_argument("--once", action="store_true", help="Exit when nothing is due.")
        parser.add_argument("--poll", type=float, default=0.1, help="Seconds between looks while nothing is due.")

    def handle(self, *args: Any, owner: str, once: bool, poll: float, **options: Any) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: drain.begin())
        collector.settle_in()
        total = Drained()
        backoff = poll
        with Dispatcher(owner_named(owner)) as dispatcher:
            while not drain.begun():
                try:
                    drained = dispatcher.drain()
                    backoff = poll
                except (Error, psycopg.Error) as error:
                    if once:
                        raise CommandError(f"The database of {owner} did not answer: {error}") from error
                    log.warning("dispatch_waits", owner=owner, error_class=type(error).__name__, seconds=backoff)
                    time.sleep(backoff)
                    backoff = min(LONGEST_BACKOFF_SECONDS, backoff * 2)
                    continue
                for name in total.__slots__:
                    setattr(total, name, getattr(total, name) + getattr(drained, name))
                if once:
                    break
                time.sleep(poll)
        self.stdout.write(
            f"{owner}: {total.acknowledged} acknowledged, {total.retried} retried, {total.quarantined} quarantined, "
            f"{total.recovered} recovered, {total.fenced} fenced"
        )
