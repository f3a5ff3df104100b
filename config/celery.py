"""The Celery application: one queue per owner, the schedule from the owner table."""

import os

from celery import Celery
from celery.signals import worker_process_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("backbone")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_process_init.connect
def close_inherited_connections(**kwargs: object) -> None:
    """A forked worker opens connections of its own; the parent's sockets are not shared."""
    from django.db import connections

    for connection in connections.all(initialized_only=True):
        connection.inc_thread_sharing()
        connection.connection = None
