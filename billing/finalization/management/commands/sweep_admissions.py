"""`manage.py sweep_admissions`: resolve holds whose admission nobody finished, without Celery."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from billing.finalization.sweep import sweep_admissions


class Command(BaseCommand):
    help = "Ask core to refuse operations whose hold is unconfirmed; release after the refusal, confirm if admitted."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--unconfirmed-for",
            type=float,
            default=settings.ADMISSION_UNCONFIRMED_FOR,
            help="Seconds since the hold; default ADMISSION_UNCONFIRMED_FOR.",
        )

    def handle(self, *args: Any, unconfirmed_for: float, **options: Any) -> None:
        swept = sweep_admissions(unconfirmed_for=timedelta(seconds=unconfirmed_for))
        self.stdout.write(f"confirmed {swept.confirmed}, released {swept.released}, conflicting {swept.conflicting}")
        if swept.conflicting:
            raise SystemExit(1)
