"""`manage.py await_drained`: wait until every delivery that has a consumer is done, then say what is there."""

import json
import time
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from tqdm import tqdm

from config.owners import Owner, consumers, producers

POLL_SECONDS = 0.25
BACKLOG = """
SELECT count(*) FROM outbox_deliveries WHERE status IN ('pending', 'leased') AND destination = ANY(%s)
"""
DELIVERED = """
SELECT count(*), min(delivered_at), max(delivered_at) FROM outbox_deliveries WHERE delivered_at >= %s
"""


class Command(BaseCommand):
    help = (
        "Wait until every delivery that has a bound consumer is acknowledged or quarantined, and print how many were "
        "delivered at which pace, as one line of JSON. Exits with 1 if nothing moves for --patience seconds."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--patience", type=float, default=120.0, help="Seconds without any progress.")
        parser.add_argument(
            "--since",
            type=datetime.fromisoformat,
            default=datetime(2000, 1, 1, tzinfo=UTC),
            help="Count deliveries from this time on.",
        )
        parser.add_argument("--progress", action="store_true", help="Show a progress bar.")

    def handle(self, *args: Any, patience: float, since: datetime, progress: bool, **options: Any) -> None:
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
        self.stdout.write(json.dumps(_delivered(since)))


def _backlog(bound: list[str]) -> int:
    return sum(int(_one_row(owner, BACKLOG, [bound])[0]) for owner in producers())


def _delivered(since: datetime) -> dict[str, Any]:
    rows = [row for owner in producers() if (row := _one_row(owner, DELIVERED, [since]))[0]]
    count = sum(row[0] for row in rows)
    seconds = (max(row[2] for row in rows) - min(row[1] for row in rows)).total_seconds() if rows else 0.0
    return {"delivered": count, "seconds": seconds, "perSecond": round(count / seconds, 1) if seconds else 0.0}


def _one_row(owner: Owner, statement: str, parameters: list[Any]) -> tuple[Any, ...]:
    with connections[owner.read_alias].cursor() as cursor:
        cursor.execute(statement, parameters)
        row: tuple[Any, ...] = cursor.fetchone()
    return row
