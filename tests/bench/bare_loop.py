"""Child: the same statements on the same schema, as the same roles, in a bare psycopg loop: no Django, no pydantic.

It claims, hashes, projects and settles like a dispatcher with the real projector, but it trusts every envelope: it
validates nothing, keeps no heartbeat, counts nothing, and knows only the two events of an admission. What it reaches is
what the statements allow; the distance of the dispatcher from it is the price of everything around them.
"""

import hashlib
import resource
import time
from dataclasses import dataclass, field
from typing import Any

import django
import orjson
import psycopg

from tests.bench import children

BATCH, LEASE = 500, 30
Row = dict[str, Any]


def main() -> None:
    django.setup()
    from config.owners import owner_named
    from tests.bench.bare_projection import Projection

    owner = owner_named("core")
    with _connect(owner.dispatch_alias) as dispatch, _connect(owner.alias) as core:
        loop = Loop(dispatch, Projection(core))
        children.wait_for_start()
        before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        acknowledged = loop.drain()
        seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    children.answer(
        acknowledged=acknowledged,
        seconds=seconds,
        cpu=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    )


def _connect(alias: str) -> psycopg.Connection[tuple[Any, ...]]:
    from django.conf import settings

    database = settings.DATABASES[alias]
    return psycopg.connect(
        host=database["HOST"],
        port=database["PORT"],
        dbname=database["NAME"],
        user=database["USER"],
        password=database["PASSWORD"],
        autocommit=True,
        prepare_threshold=0,
    )


@dataclass(slots=True)
class Loop:
    dispatch: psycopg.Connection[tuple[Any, ...]]
    projection: Any
    mark: str = "-infinity"
    times: dict[str, float] = field(default_factory=lambda: {"claim": 0.0, "work": 0.0, "settle": 0.0})

    def drain(self) -> int:
        total, full_at, rescue_at = 0, 0.0, 0.0
        while True:
            now = time.monotonic()
            full, rescue = now >= full_at, now >= rescue_at
            rows = self.claim("-infinity" if full else self.mark, rescue=rescue)
            later = time.monotonic()
            if rescue:
                rescue_at = later + 1
            if full:
                full_at = later + max(1, 20 * (later - now))
            if not rows:
                if full:
                    return total
                full_at = later
                continue
            if len(rows) < BATCH and not full:
                full_at = later
            self.mark = rows[-1][5]
            total += self.settle(rows, self.projection.apply([_read(row) for row in rows]))

    def claim(self, mark: str, *, rescue: bool) -> list[tuple[Any, ...]]:
        from outbox.claim import CLAIM

        return self.dispatch.execute(
            CLAIM.format(batch=BATCH, lease=LEASE),
            {"destination": "core_operations", "worker": f"bare:{id(self)}", "mark": mark, "rescue": rescue},
        ).fetchall()

    def settle(self, rows: list[tuple[Any, ...]], digests: dict[str, str]) -> int:
        from outbox.settle import ACKNOWLEDGE, PUBLISH

        with self.dispatch.transaction():
            done = self.dispatch.execute(
                ACKNOWLEDGE,
                [
                    array(row[0] for row in rows),
                    array(row[1] for row in rows),
                    array(str(row[2]) for row in rows),
                    quoted(self.projection.ref(row[0]) for row in rows),
                    array(digests[row[0]] for row in rows),
                    array(row[10] for row in rows),
                    "operations_projector",
                    "OperationsProjectionAppliedReceipt",
                    "1",
                    "jcs-sha256-v1",
                    "core_operations",
                ],
            ).fetchall()
            self.dispatch.execute(PUBLISH, [array(attempt for (attempt,) in done)]).fetchall()
        return len(done)


def _read(row: tuple[Any, ...]) -> Row:
    text = row[8].encode()
    if hashlib.sha256(text).hexdigest() != row[10]:
        raise ValueError(f"The stored bytes of {row[0]} do not hash to the stored digest.")
    read: Row = orjson.loads(text)
    return read | {"text": row[8], "sha256": row[10]}


def array(values: Any) -> str:
    """An array literal of plain words."""
    return "{" + ",".join(values) + "}"


def quoted(values: Any) -> str:
    """An array literal of texts without quotes and backslashes."""
    return '{"' + '","'.join(values) + '"}'


if __name__ == "__main__":
    main()
