"""Store records without HTTP, and look at what is stored."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import connections
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from metering.otlp import days
from metering.otlp.decode import Summary, decode
from metering.otlp.fields import Kind
from metering.otlp.store import Outcome, store
from tests.otlp.make import body, rules

TODAY = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)


def put(records: Iterable[LogRecord], *, cluster: str = "7", gateway: bool = True) -> Outcome:
    """Store records as the receiver would for this cluster's token."""
    summary = Summary()
    pieces = decode(body(records), rules=rules(gateway=gateway), summary=summary)
    return store(pieces, cluster_id=cluster, mode="gateway" if gateway else "per_cluster", summary=summary)


def counts(outcome: Outcome, kind: Kind = Kind.LLM_BILLING) -> tuple[int, int, int]:
    """Stored, duplicates and conflicts of a kind."""
    return outcome.stored[kind], outcome.duplicates[kind], outcome.conflicts[kind]


def rows(statement: str, values: Sequence[Any] = (), *, alias: str = "telemetry.read") -> list[tuple[Any, ...]]:
    """What a query finds through the read role."""
    with connections[alias].cursor() as cursor:
        cursor.execute(statement, list(values))
        return list(cursor.fetchall())


def stored(table: str = "llm_billing_events") -> int:
    """How many events there are."""
    return int(rows(f"SELECT count(*) FROM {table}")[0][0])


def forget_days() -> None:
    """As in a process that has just started."""
    days._retained.clear()
    for known in days._known.values():
        known.clear()


def has_timescale() -> bool:
    """Whether the event tables are hypertables here."""
    return bool(rows("SELECT 1 FROM pg_extension WHERE extname = 'timescaledb'"))


def parts(table: str) -> list[str]:
    """The partitions or chunks of a table of events."""
    found = rows("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", [table])
    return [name for (name,) in found]
