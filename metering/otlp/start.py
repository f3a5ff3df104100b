"""What must hold before the receiver listens: the settings of its sink, its database, its archive (T10).

While the database can not be reached the receiver does not listen yet: its clients keep their data, as they do while it
is down.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connections

from config.databases import NO_SERVER_PORT, address_of
from config.migrate import migrate
from config.migrated import unapplied
from config.owners import owner_named
from config.provision import grant_tables, provision
from metering.clusters.models import Sink
from metering.consumption.window_length import ensure_window_length
from metering.otlp import archive, days

STORE_SETTINGS = tuple(f"OTLP_TS_{name}" for name in ("HOST", "PORT", "USER", "PASSWORD", "DBNAME", "SSLMODE"))
LOCK = "SELECT pg_advisory_lock(hashtext('telemetry_auto_migrate'))"
UNLOCK = "SELECT pg_advisory_unlock(hashtext('telemetry_auto_migrate'))"
AGAIN_SECONDS = 2.0

TELEMETRY = owner_named("telemetry")
log = structlog.get_logger("otlp.start")


def prepare(*, pause: Callable[[float], None] = time.sleep) -> None:
    """Return when the receiver may listen. Raises `ImproperlyConfigured`, saying what to set or to run."""
    sink = Sink(settings.OTLP_SINK_TYPE)
    if sink is not Sink.LOGGING and not has_store():
        names = ", ".join(STORE_SETTINGS)
        raise ImproperlyConfigured(f"OTLP_SINK_TYPE={sink.value} needs the telemetry database. Set {names}.")
    if sink is Sink.FANOUT:
        _prepare_archive()
    if sink is not Sink.LOGGING:
        _when_reachable(prepare_store, pause)
    elif has_store():
        _if_it_can_be(prepare_store)


def has_store() -> bool:
    """Whether anything says where the telemetry database is."""
    return address_of(TELEMETRY).port != NO_SERVER_PORT


def _prepare_archive() -> None:
    try:
        archive.prepare(settings.OTLP_ARCHIVE_DIR)
    except OSError as error:
        raise ImproperlyConfigured(
            f"OTLP_ARCHIVE_DIR={settings.OTLP_ARCHIVE_DIR} can not be written: {error.strerror}. Name a directory "
            f"that the receiver may write."
        ) from None


def prepare_store() -> None:
    """Bring the telemetry database up to date, or check that it is and has this length of windows; make days ahead."""
    if settings.OTLP_TS_AUTO_MIGRATE:
        _migrate()
    with connections[TELEMETRY.read_alias].cursor() as cursor:
        missing = unapplied(TELEMETRY, cursor)
    if missing:
        raise ImproperlyConfigured(
            "The telemetry database lacks migrations, and OTLP_TS_AUTO_MIGRATE=0. Run `manage.py migrate_owners "
            "telemetry`, or set OTLP_TS_AUTO_MIGRATE=1."
        )
    ensure_window_length()
    days.ensure_ahead(datetime.now(UTC).date(), ahead=settings.OTLP_DAYS_AHEAD)


def _migrate() -> None:
    """As `migrate_owners telemetry`; receivers that start together take turns, and only the first finds work."""
    provision(TELEMETRY)
    with connections[TELEMETRY.schema_alias].cursor() as cursor:
        cursor.execute(LOCK)
        try:
            if unapplied(TELEMETRY, cursor):
                migrate(TELEMETRY)
                grant_tables(TELEMETRY)
                log.info("otlp_database_migrated")
        finally:
            cursor.execute(UNLOCK)


def _when_reachable(work: Callable[[], None], pause: Callable[[float], None]) -> None:
    while True:
        try:
            return work()
        except OperationalError as error:
            log.error("otlp_waits_for_database", error_class=type(error).__name__)
            pause(AGAIN_SECONDS)
        finally:
            _close()


def _if_it_can_be(work: Callable[[], None]) -> None:
    """For the clusters with a sink of their own; the sink of all others does without a store."""
    try:
        work()
    except (OperationalError, ImproperlyConfigured) as error:
        log.warning("otlp_store_not_prepared", error_class=type(error).__name__, error=str(error))
    finally:
        _close()


def _close() -> None:
    for alias in (TELEMETRY.alias, TELEMETRY.schema_alias, TELEMETRY.read_alias):
        connections[alias].close()
