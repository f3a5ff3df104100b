"""Scheduled work on stored telemetry. Each may run twice at once, or late."""

from datetime import UTC, datetime

from celery import shared_task
from django.conf import settings

from config.owners import owner_named
from metering.otlp.days import ensure_ahead
from metering.otlp.expire import expire
from metering.otlp.fields import Kind
from metering.otlp.identify import scan

QUEUE = owner_named("telemetry").queue
SLICE_SECONDS = 20.0


@shared_task(name="otlp.identify_events", queue=QUEUE)
def identify_events() -> None:
    """Find event ids that occurred at two times."""
    for kind in Kind:
        scan(kind, seconds=SLICE_SECONDS)


@shared_task(name="otlp.keep_days", queue=QUEUE)
def keep_days() -> None:
    """Make the days ahead, and remove those that are no longer kept."""
    today = datetime.now(UTC).date()
    ensure_ahead(today, ahead=settings.OTLP_DAYS_AHEAD)
    if settings.OTLP_RETENTION_DAYS:
        for kind in Kind:
            expire(kind, today=today, keep_days=settings.OTLP_RETENTION_DAYS)
