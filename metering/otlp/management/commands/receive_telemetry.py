"""`manage.py receive_telemetry`: the OTLP receiver, until it is stopped."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from metering.otlp.start import prepare


class Command(BaseCommand):
    help = "Receive billing telemetry on OTLP_PORT in OTLP_PROCESSES processes, until it is stopped."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            prepare()
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from None
        from metering.otlp.serve import Processes

        Processes().run()
