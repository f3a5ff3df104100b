"""Publish the contracts as JSON Schema, TypeScript, goldens and a page, or prove that what is published is current."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from outbox.contracts.publish.artefacts import stale, write
from outbox.contracts.publish.catalogue import Unpublishable


class Command(BaseCommand):
    help = "Write JSON Schema, TypeScript, goldens and docs/contracts/README.md from the contracts."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="change nothing; fail if anything is stale")

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        try:
            found = stale(settings.BASE_DIR) if check else write(settings.BASE_DIR)
        except Unpublishable as error:
            raise CommandError(str(error)) from error
        for item in found:
            self.stdout.write(f"{'stale' if check else 'written'}  {item}")
        if found and check:
            raise CommandError(f"{len(found)} published files are stale. Run `manage.py contracts` and commit them.")
        self.stdout.write("Every contract is published as it is." if check else f"{len(found)} files written.")
