"""Stored events, managed keys and payers for tests, made by the rooms that own them."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connections

from metering.clusters.audit import Actor
from metering.clusters.managed_keys import Key, learn_keys
from metering.consumption.aggregate import Outcome
from metering.consumption.models import ConsumptionCharge, ConsumptionLine, ConsumptionWindow
from metering.consumption.sweep import Swept, sweep_consumption
from metering.otlp.decode import Piece, Summary
from metering.otlp.fields import COLUMNS, Kind
from metering.otlp.read_record import Row
from metering.otlp.store import store
from metering.otlp.times import micros

WINDOW = datetime(2026, 3, 4, 10, tzinfo=UTC)
HOUR, MICROSECOND = timedelta(hours=1), timedelta(microseconds=1)
LATER = WINDOW + timedelta(days=2)
"""When every window of these tests is over."""
LLM, RESOURCE = Kind.LLM_BILLING, Kind.RESOURCE_UTILIZATION
PATIENCE = timedelta(seconds=60)
ACTOR = Actor("tests", "tests")


def llm(at: datetime = WINDOW, **fields: Any) -> tuple[Kind, Row]:
    """One call of a model: 100 prompt tokens, 10 of completion, by key 101, unless `fields` says otherwise."""
    given = {
        "manager_key_id": "101",
        "model_name": "small-1",
        "provider": "acme",
        "prompt_tokens": 100,
        "completion_tokens": 10,
    }
    return _row(LLM, at, {**given, **fields})


def sample(at: datetime = WINDOW, **fields: Any) -> tuple[Kind, Row]:
    """One sample of a container's processor, at half its limit."""
    given = {"resource_type": "cpu", "utilization": 0.5, "above_threshold": False, "organization_id": "org-1"}
    return _row(RESOURCE, at, {**given, **fields})


def _row(kind: Kind, at: datetime, fields: dict[str, Any]) -> tuple[Kind, Row]:
    given = {"event_id": str(uuid.uuid4()), "tenant_name": "ns-1", "namespace": "ns-1", **fields}
    names = [column.name for column in COLUMNS[kind]]
    assert set(given) <= set(names), set(given) - set(names)
    return kind, (*(given.get(name) for name in names), micros(at))


def receive(*events: tuple[Kind, Row], cluster: str = "7", mode: str = "gateway") -> None:
    """Store events as the receiver does, in one request."""
    piece = Piece()
    for kind, row in events:
        piece.rows[kind].append(row)
    store([piece], cluster_id=cluster, mode=mode, summary=Summary())


def contradicting(event: tuple[Kind, Row]) -> tuple[Kind, Row]:
    """The same LLM event with one prompt token more."""
    kind, row = event
    place = [column.name for column in COLUMNS[kind]].index("prompt_tokens")
    return kind, (*row[:place], row[place] + 1, *row[place + 1 :])


EXCLUDE = """
INSERT INTO telemetry_conflicts (kind, reason, event_id, occurred_at, cluster_id, standing_cluster_id,
       standing_occurred_at, fields, arrived, arrived_sha256)
SELECT 'llm_billing', 'two_times', event_id, occurred_at, cluster_id, cluster_id, occurred_at - interval '1 s',
       'occurred_at', '{}', repeat('0', 64) FROM llm_billing_events WHERE event_id = %s
"""
REMARK = "UPDATE consumption_windows_dirty SET marked_generation = marked_generation + 1"


def exclude(event_id: str) -> None:
    """Find that this event's id stands under another time, as the receiver's scan does; every window is dirty."""
    with connections["telemetry"].cursor() as cursor:
        cursor.execute(EXCLUDE, [event_id])
        assert cursor.rowcount == 1
        cursor.execute(REMARK)


def learn(**organizations: str) -> None:
    """Learn which organisation pays for which key: `learn(k101="org-1")`."""
    keys = [Key(name.removeprefix("k"), organization) for name, organization in organizations.items()]
    learn_keys(keys=keys, actor=ACTOR)


def swept(at: datetime = LATER) -> Swept:
    """One sweep to its end."""
    return sweep_consumption(at=at, patience=PATIENCE)


def aggregated(done: Swept) -> int:
    """How many windows a sweep summed up; none failed or was held."""
    others = {outcome: count for outcome, count in done.windows.items() if count and outcome is not Outcome.AGGREGATED}
    assert others == {}
    return done.windows[Outcome.AGGREGATED]


def lines(**where: Any) -> list[ConsumptionLine]:
    """Lines of consumption in the order of their beginning."""
    return list(ConsumptionLine.objects.filter(**where).order_by("line_id"))


def charges(**where: Any) -> list[ConsumptionCharge]:
    """Charges in the order of their beginning."""
    return list(ConsumptionCharge.objects.filter(**where).order_by("consumption_charge_id"))


def window(**where: Any) -> ConsumptionWindow:
    """The one window."""
    return ConsumptionWindow.objects.get(**where)


def dirty() -> int:
    """Windows that are to be summed up."""
    with connections["telemetry"].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM consumption_windows_dirty WHERE marked_generation > cleared_generation")
        return int(cursor.fetchone()[0])


def ask_now() -> None:
    """Every charge that waits may be asked about at once."""
    with connections["telemetry"].cursor() as cursor:
        cursor.execute("UPDATE consumption_charges SET ask_after = now() WHERE ask_after IS NOT NULL")
