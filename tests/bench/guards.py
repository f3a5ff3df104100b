"""Part `guards`: what each wall costs. It is taken down in a scratch database and processor times are compared.

The price is the time that the server needs less without the wall, per event for an append and per delivery for a drain.
Processor time hardly depends on what else the machine does; a price within a few µs of zero is noise.
"""

from dataclasses import dataclass
from statistics import median

import psycopg

from tests.bench import children, drain, ground, processor
from tests.bench.size import QUICK, Size
from tests.bench.table import Line


@dataclass(frozen=True, slots=True)
class Wall:
    """Some guards that stand together: trigger names and constraint kinds, as LIKE patterns over the catalog."""

    name: str
    triggers: tuple[str, ...] = ()
    constraints: tuple[tuple[str, str], ...] = ()
    """(kind: c for CHECK, f for foreign key; table)."""


OUTBOX, PROJECTION = "outbox%", "(operation|timeline|exact|projection|pending|revision)%"
WALLS = (
    Wall("digest and columns of the envelope", triggers=("%outbox_event_envelope%",)),
    Wall("mandatory deliveries, proven at commit", triggers=("%outbox_event_mandatory_set%",)),
    Wall("a delivery copies its member", triggers=("%outbox_delivery_member%",)),
    Wall("legal steps of a delivery", triggers=("%outbox_delivery_transition%", "%outbox_delivery_frozen%")),
    Wall("a start belongs to its claim", triggers=("%outbox_attempt_start_legal%",)),
    Wall("a finish reports its delivery's step", triggers=("%outbox_attempt_finish_legal%",)),
    Wall("events are frozen, published once", triggers=("%outbox_event_frozen%", "%outbox_event_published%")),
    Wall("foreign keys of the outbox", constraints=(("f", OUTBOX),)),
    Wall("checks of the outbox", constraints=(("c", OUTBOX),)),
    Wall("checks of the projection", constraints=(("c", PROJECTION),)),
    Wall(
        "all triggers and checks",
        triggers=("%outbox%", "%operation%", "%projection%", "%timeline%", "%identifier%"),
        constraints=(("f", OUTBOX), ("c", OUTBOX), ("c", PROJECTION)),
    ),
)
OF_APPEND = frozenset(wall.name for wall in (*WALLS[:3], *WALLS[7:9], WALLS[-1]))
OF_DRAIN = frozenset(wall.name for wall in WALLS[3:])


def measure(size: Size) -> list[Line]:
    """The price of each wall, medians of interleaved rounds."""
    events = size.of(20_000, least=2_000)
    walls = WALLS if size.share > QUICK.share else WALLS[-1:]
    drain.load(events)
    lines = []
    for what, of, unit in (("append", OF_APPEND, "event"), ("drain", OF_DRAIN, "delivery")):
        prices: dict[str, list[float]] = {wall.name: [] for wall in walls if wall.name in of}
        whole = []
        for _ in range(size.rounds):
            base = _time(what, None, events)
            whole.append(base)
            for wall in walls:
                if wall.name in of:
                    prices[wall.name].append(base - _time(what, wall, events))
        lines.append(Line("guards", f"{what}: server, all walls standing", median(whole), f"µs/{unit}"))
        lines += [
            Line("guards", f"{what}: of which {name}", median(found), f"µs/{unit}") for name, found in prices.items()
        ]
    return lines


def _time(what: str, wall: Wall | None, events: int) -> float:
    of = ground.EMPTY if what == "append" else drain.LOADED
    with ground.scratch(of=of, to="bench_guards_") as prefix:
        if wall is not None:
            with ground.administrator(f"{prefix}core") as connection:
                _take_down(connection, wall)
        before = processor.used_by_server()
        if what == "append":
            children.run("preload", "--events", str(events), "--bulk", "100", prefix=prefix)
        else:
            children.run("bare_loop", prefix=prefix, processes=drain.PROCESSES)
        after = processor.used_by_server()
    if before is None or after is None:
        raise RuntimeError("The processor time of a server is only known on Linux.")
    used = (after - before) / events * 1e6
    print(f"  {what} without {wall.name if wall else 'nothing'}: {used:.0f} µs", flush=True)
    return used


def _take_down(connection: psycopg.Connection[tuple[object, ...]], wall: Wall) -> None:
    for pattern in wall.triggers:
        for name, table in connection.execute(
            "SELECT quote_ident(tgname), tgrelid::regclass::text FROM pg_trigger"
            " WHERE NOT tgisinternal AND tgname LIKE %s",
            [pattern],
        ).fetchall():
            connection.execute(f"DROP TRIGGER IF EXISTS {name} ON {table}".encode())
    for kind, pattern in wall.constraints:
        for name, table in connection.execute(
            "SELECT quote_ident(conname), conrelid::regclass::text FROM pg_constraint"
            " WHERE contype = %s AND conrelid::regclass::text SIMILAR TO %s",
            [kind, pattern],
        ).fetchall():
            connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}".encode())
