"""Scheduled work of finalization."""

from datetime import timedelta

from celery import shared_task
from django.conf import settings

from billing.finalization.sweep import sweep_admissions
from config.owners import owner_named


@shared_task(name="billing.sweep_admissions", queue=owner_named("billing").queue)
def sweep() -> None:
    """Resolve holds whose admission nobody finished."""
    sweep_admissions(unconfirmed_for=timedelta(seconds=settings.ADMISSION_UNCONFIRMED_FOR))
