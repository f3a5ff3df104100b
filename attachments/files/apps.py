"""Staged files: changes of the stored tree that follow a business transaction."""

from django.apps import AppConfig


class FilesConfig(AppConfig):
    name = "attachments.files"
    label = "files"

    def ready(self) -> None:
        from attachments.files import checks  # noqa: F401  # registers the system check
