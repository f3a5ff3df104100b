"""The Celery application: one queue per owner, the schedule from the owner table."""

import os

from celery import Celery
from celery.signals import setup_logging, worker_init, worker_process_init, worker_ready, worker_shutting_down
from django_structlog.celery.steps import DjangoStructLogInitStep

from outbox import collector, drain

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("backbone")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["worker"].add(DjangoStructLogInitStep)


@setup_logging.connect
def log_like_django(**kwargs: object) -> None:
    """Celery sets up no logging of its own."""
    from django.conf import settings

    from config.logging import configure

    configure(settings.LOGGING)


@worker_init.connect
def serve_metrics(**kwargs: object) -> None:
    """Serve the counters of this machine where the operator named a port, because no web process does it here."""
    from django.conf import settings

    from config.metrics import serve_counters

    if settings.WORKER_METRICS_PORT:
        serve_counters(port=settings.WORKER_METRICS_PORT, address=settings.WORKER_METRICS_HOST)


@worker_init.connect
def refuse_wrong_filesystems(**kwargs: object) -> None:
    """A worker ends changes of stored files, so it must be able to rename them."""
    from attachments.files.errors import DifferentFilesystems
    from attachments.files.place import refuse_to_start

    try:
        refuse_to_start()
    except DifferentFilesystems as error:
        # Celery logs what a signal raises and goes on; this ends it.
        raise SystemExit(str(error)) from error


@worker_ready.connect
def sweep_files_at_start(**kwargs: object) -> None:
    """What was left before this start is found at once, by whichever worker has the queue."""
    from attachments.files.tasks import sweep_files
    from config.owners import owner_named

    sweep_files.apply_async(queue=owner_named("attachments").queue, expires=600)


@worker_process_init.connect
def count_worker(**kwargs: object) -> None:
    """A worker process exists from now on, with this release and region, as long as it lives."""
    from django.conf import settings

    from outbox.metrics import worker_started

    worker_started(version=settings.RELEASE, region=settings.REGION)


@worker_process_init.connect
def start_afresh(**kwargs: object) -> None:
    """A forked worker opens connections of its own; the parent's sockets are not shared."""
    from django.db import connections

    collector.settle_in()
    for connection in connections.all(initialized_only=True):
        connection.inc_thread_sharing()
        connection.connection = None


@worker_shutting_down.connect
def drain_dispatchers(**kwargs: object) -> None:
    """SIGTERM to the worker reaches its forked dispatchers: they claim nothing more and give back what they hold."""
    drain.begin()
