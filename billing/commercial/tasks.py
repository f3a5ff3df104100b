"""Scheduled work of the commercial boundary. The schedule names the queue: that of the owner whose markers are read."""

from datetime import timedelta

from celery import shared_task
from django.conf import settings

from billing.commercial.sweep import sweep


@shared_task(name="commercial.sweep", ignore_result=True)
def sweep_business(owner_name: str) -> None:
    """Resolve what killed processes of this owner's business code left; twice at once is harmless."""
    sweep(business=owner_name, held_for=timedelta(seconds=settings.COMMERCIAL_HELD_FOR))
