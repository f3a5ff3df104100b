"""`manage.py diagrams [--check]`: write the state diagrams of the documentation, or prove them current."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.diagrams import ROOT, pages, with_diagrams


class Command(BaseCommand):
    help = "Write the state diagrams from the transition tables; with --check change nothing and fail if one is stale."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true")

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        stale = [page for page in pages() if (ROOT / page).read_text() != with_diagrams(page)]
        if check and stale:
            raise CommandError(f"Stale diagrams in {', '.join(stale)}. Run `make fix`.")
        for page in stale:
            (ROOT / page).write_text(with_diagrams(page))
            self.stdout.write(f"wrote {page}")
