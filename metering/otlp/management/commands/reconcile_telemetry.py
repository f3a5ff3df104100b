"""`manage.py reconcile_telemetry --cluster C --from … --to …`: is everything that is stored archived, and no more?"""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import orjson
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from metering.moment import moment
from metering.otlp.archive import Damaged
from metering.otlp.reconcile import Compared, NoLongerKept, reconcile

SHOWN = 20


class Command(BaseCommand):
    help = "Compare the stored events of a cluster with its archived ones; exit 1 if the archive lacks or exceeds."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", required=True, help="Its decimal id.")
        parser.add_argument("--from", type=moment, required=True, dest="begin", help="First moment, by event time.")
        parser.add_argument("--to", type=moment, required=True, dest="end", help="The first moment after it.")
        parser.add_argument(
            "--archive", type=Path, action="append", help="A directory of archive files; default OTLP_ARCHIVE_DIR."
        )
        parser.add_argument("--show", type=int, default=SHOWN, help=f"Keys named per difference; default {SHOWN}.")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        archives = options["archive"] or [settings.OTLP_ARCHIVE_DIR]
        if options["begin"] >= options["end"]:
            raise CommandError("--from must be before --to.")
        for archive in archives:
            if not archive.is_dir():
                raise CommandError(f"{archive} is no directory. Name one with archive files by --archive.")
        try:
            found = reconcile(
                cluster_id=options["cluster"],
                begin=options["begin"],
                end=options["end"],
                archives=archives,
                shown=options["show"],
            )
        except (Damaged, NoLongerKept) as error:
            raise CommandError(str(error)) from error
        agrees = all(compared.agrees for compared in found)
        if options["json"]:
            self.stdout.write(orjson.dumps({"ok": agrees, "kinds": [_wire(one) for one in found]}).decode())
        else:
            self._say(found, agrees=agrees)
        if not agrees:
            sys.exit(1)

    def _say(self, found: list[Compared], *, agrees: bool) -> None:
        for one in found:
            self.stdout.write(
                f"{one.kind.value:<21} {one.stored:>11,} stored {one.archived:>11,} archived"
                f" {one.lacking_count:>9,} lacking {one.exceeding_count:>9,} exceeding {one.conflicts:>9,} conflicts"
            )
            for what, keys, count in (
                ("not archived", one.lacking, one.lacking_count),
                ("not stored", one.exceeding, one.exceeding_count),
            ):
                for event_id, occurred_at in keys:
                    self.stdout.write(f"  {what}: {event_id!r} at {occurred_at}")
                if count > len(keys):
                    self.stdout.write(f"  {what}: and {count - len(keys):,} more")
        self.stdout.write("store and archive agree" if agrees else "store and archive do NOT agree")


def _wire(one: Compared) -> dict[str, Any]:
    return {
        "kind": one.kind.value,
        "stored": one.stored,
        "archived": one.archived,
        "conflicts": one.conflicts,
        "lacking": one.lacking_count,
        "exceeding": one.exceeding_count,
        "lackingKeys": [list(key) for key in one.lacking],
        "exceedingKeys": [list(key) for key in one.exceeding],
    }
