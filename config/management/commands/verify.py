"""`manage.py verify`: prove the invariants from the databases alone."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from config.verify.check import Check, Tally
from config.verify.report import verify


class Command(BaseCommand):
    help = "Prove the invariants from the databases alone, under their read roles. Exits with 1 on a violation."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="One line of JSON instead of text.")

    def handle(self, *args: Any, **options: Any) -> None:
        as_json: bool = options["json"]
        try:
            report = verify(after_each=None if as_json else self._say)
        except (Error, psycopg.Error) as error:
            raise CommandError(
                f"A database did not answer, so nothing is proven: {error}\n"
                "`manage.py owners` shows which databases are reachable and migrated."
            ) from error
        if as_json:
            self.stdout.write(json.dumps(report.wire()))
        else:
            figures = ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in report.totals.items())
            self.stdout.write(f"\n{figures}\n\n{'Everything holds.' if report.ok else 'NOT everything holds.'}")
        if not report.ok:
            sys.exit(1)

    def _say(self, check: Check, tally: Tally) -> None:
        verdict = "FAIL" if tally.violations else "ok"
        self.stdout.write(f"{verdict:<5} {check.id:<22} {tally.examined:>11,} examined  {check.promise}")
        if tally.violations:
            self.stdout.write(f"      {tally.violations:,} violations:")
        for sample in tally.samples:
            self.stdout.write(f"        {sample.database}: {sample.subject}: {sample.problem}")
        self.stdout.flush()
