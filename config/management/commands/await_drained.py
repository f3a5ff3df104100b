"""`manage.py await_drained`: wait until every delivery that has a consumer is done, then say what is there."""

import json
import time
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from tqdm import tqdm

from config.owners import Owner, consumers, producers

POLL_SECONDS = 0.25
BACKLOG = """
SELECT count(*) FROM outbox_deliveries WHERE status IN ('pending', 'leased') AND destination = ANY(%s)
"""
FIGURES = """
SELECT
    count(*),
    count(*) FILTER (WHERE status = 'acknowledged'),
    count(*) FILTER (WHERE status = 'quarantined'),
    count(*) FILTER (WHERE status IN ('pending', 'leased') AND NOT destination = ANY(%s)),
    count(*) FILTER (WHERE delivered_at >= %s),
    max(delivered_at)
FROM outbox_deliveries
"""
FIGURE_NAMES = ("deliveries", "acknowledged", "quarantined", "awaiting_consumer", "acknowledged_since")


class Command(BaseCommand):
    help = (
        "Wait until every delivery that has a bound consumer is acknowledged or quarantined, and print the figures of "
        "all producers as one line of JSON. Exits with 1 if nothing moves for --patience seconds."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--patience", type=float, default=120.0, help="Seconds without any progress.")
        parser.add_argument("--since", type=datetime.fromisoformat, help="Count acknowledged_since from this time.")
        parser.add_argument("--progress", action="store_true", help="Show a progress bar.")

    def handle(self, *args: Any, patience: float, since: datetime | None, progress: bool, **options: Any) -> None:
        bound = [consumer.destination for _, consumer in consumers() if consumer.handler]
        remaining = most = _backlog(bound)
        moved = time.monotonic()
        with tqdm(total=most, desc="deliver", unit=" deliveries", disable=not progress or not most) as bar:
            while remaining:
                time.sleep(POLL_SECONDS)
                before, remaining = remaining, _backlog(bound)
                if remaining != before:
                    moved = time.monotonic()
                elif time.monotonic() - moved > patience:
                    raise CommandError(
                        f"{remaining} deliveries stand still for {patience:.0f} s. Is a worker running? "
                        f"`manage.py owners` shows where they are."
                    )
                bar.total = most = max(most, remaining)
                bar.n = most - remaining
                bar.refresh()
        self.stdout.write(json.dumps(_figures(bound, since)))


def _backlog(bound: list[str]) -> int:
    return sum(int(_one_row(owner, BACKLOG, [bound])[0]) for owner in producers())


def _figures(bound: list[str], since: datetime | None) -> dict[str, Any]:
    rows = [_one_row(owner, FIGURES, [bound, since]) for owner in producers()]
    totals = {name: sum(row[column] for row in rows) for column, name in enumerate(FIGURE_NAMES)}
    last = max((row[-1] for row in rows if row[-1]), default=None)
    return {**totals, "last_delivered_at": last and last.isoformat()}


def _one_row(owner: Owner, statement: str, parameters: list[Any]) -> tuple[Any, ...]:
    with connections[owner.read_alias].cursor() as cursor:
        cursor.execute(statement, parameters)
        row: tuple[Any, ...] = cursor.fetchone()
    return row
