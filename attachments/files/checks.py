"""System checks of stored files; every process that uses the tree tries the same by itself (F5)."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from attachments.files.errors import DifferentFilesystems
from attachments.files.place import refuse_different_filesystems


@register()
def files_can_be_renamed_into_place(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Received files and the tree are on one filesystem; looks, and makes nothing."""
    try:
        refuse_different_filesystems(root=settings.ATTACHMENTS_ROOT, incoming=settings.ATTACHMENTS_INCOMING)
    except (DifferentFilesystems, OSError) as error:
        return [
            Error(
                f"Stored files cannot be renamed into place: {error}",
                hint="Set ATTACHMENTS_INCOMING below ATTACHMENTS_ROOT, or leave it out.",
                id="files.E001",
            )
        ]
    return []
