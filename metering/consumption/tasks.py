"""Scheduled work of consumption."""

from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from config.owners import owner_named
from metering.consumption.sweep import sweep_consumption


@shared_task(name="telemetry.sweep_consumption", queue=owner_named("telemetry").queue)
def sweep() -> None:
    """Sum up, release, charge."""
    sweep_consumption(at=timezone.now(), patience=timedelta(seconds=settings.CONSUMPTION_SLICE))
