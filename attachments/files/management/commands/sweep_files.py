"""`manage.py sweep_files`"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from attachments.files.errors import FilesError
from attachments.files.sweep import sweep


class Command(BaseCommand):
    help = "End what killed processes left in the stored tree, now; exit 1 if something resists."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = sweep()
        except FilesError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{found.kept} kept, {found.undone} undone, {found.live} at work, {found.failed} failed,"
            f" {found.incoming} received files removed"
        )
        if found.failed:
            raise CommandError("See the section Staged files of the admin, and docs/runbook/FilesNotEnded.md.")
