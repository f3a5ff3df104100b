"""Part `claim`: whether a claim still costs the same at the end of a long backlog as at its beginning.

Three backlogs: plain; while another session holds a snapshot, so that nothing can be vacuumed; and so again among half
a million quarantined rows and half a million that are not due. Retries and expired leases are in all of them.
"""

from statistics import median
from typing import Any

import psycopg

from tests.bench import children, claimer, ground, multiply
from tests.bench.table import Line

BACKLOG = "bench_claimload_"
QUARANTINED = """
INSERT INTO outbox_deliveries ({columns})
SELECT {values} FROM generate_series(1, %(count)s) CROSS JOIN (SELECT * FROM outbox_deliveries LIMIT 1) d
"""
OTHERS = {
    "quarantined": {"status": "'quarantined'", "attempt_count": "1", "lease_token": "1"},
    "future": {"available_at": "now() + interval '1 day' + random() * interval '1 day'"},
}


def measure(*, quick: bool) -> list[Line]:
    """For each backlog the median of the first decile of claims, and the last decile divided by it."""
    deliveries, others = (8_000, 4_000) if quick else (300_000, 500_000)
    multiply.load(deliveries, prefix=BACKLOG)
    lines = _run("plain", deliveries)
    lines += _run("held snapshot", deliveries, "--hold-snapshot")
    with ground.administrator(f"{BACKLOG}core") as connection:
        for changes in OTHERS.values():
            _add(connection, others, changes)
    ground.settled(f"{BACKLOG}core")
    lines += _run(f"held snapshot, {others:,} quarantined, {others:,} future", deliveries, "--hold-snapshot")
    ground.drop(f"{BACKLOG}core")
    return lines


def _add(connection: psycopg.Connection[tuple[Any, ...]], count: int, changes: dict[str, str]) -> None:
    columns = multiply.columns_of(connection, "outbox_deliveries")
    told = {"event_id": "uuidv7()", **changes}
    statement = QUARANTINED.format(
        columns=", ".join(columns), values=", ".join(told.get(column, f"d.{column}") for column in columns)
    )
    with connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")
        psycopg.ClientCursor(connection).execute(statement.encode(), {"count": count})


def _run(name: str, deliveries: int, *arguments: str) -> list[Line]:
    with ground.scratch(of=BACKLOG, to="bench_claim_") as prefix:
        ran = children.run("claimer", *arguments, prefix=prefix)
    answer = ran.answers[0]
    if answer["acknowledged"] != deliveries:
        raise RuntimeError(f"claim, {name}: {answer['acknowledged']} of {deliveries} deliveries were acknowledged")
    times = [spent / rows * claimer.BATCH * 1000 for spent, rows, _, _ in answer["claims"] if rows >= claimer.BATCH]
    tenth = max(1, len(times) // 10)
    first, last = median(times[:tenth]), median(times[-tenth:])
    print(f"  {name}: {first:.1f} ms to {last:.1f} ms, {answer['recovered']} leases recovered", flush=True)
    return [
        Line("claim", f"{name}: claim of {claimer.BATCH}, first decile", first, "ms"),
        Line("claim", f"{name}: last decile to first", last / first, "×", goal="≤ 1.5"),
    ]
