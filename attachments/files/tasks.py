"""Scheduled work of stored files. The schedule names the queue."""

from celery import shared_task

from attachments.files.sweep import sweep


@shared_task(name="files.sweep", ignore_result=True)
def sweep_files() -> None:
    """End what killed processes left in the stored tree; twice at once is harmless."""
    sweep()
