"""The receiver for any ASGI server, `metering.otlp.asgi:application`; `manage.py receive_telemetry` brings its own."""

import os

import django
from django.utils.module_loading import import_string

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

application = import_string("metering.otlp.receiver.Receiver")()
