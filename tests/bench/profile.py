"""Part `profile`: where one drain spends its time, by statement on the server and by function in the client.

Statements that triggers and functions run are listed by themselves too, so the lines do not add up to the whole.
Profiling slows both sides down; the shares hold, the sums do not.
"""

from collections import Counter
from typing import Any

from tests.bench import children, ground
from tests.bench.drain import LOADED, PROCESSES, load
from tests.bench.size import Size
from tests.bench.table import Line

SHOWN = 16


def measure(size: Size) -> list[Line]:
    """The most expensive statements and functions, µs per delivery."""
    events = size.of(40_000, least=2_000)
    load(events)
    with ground.administrator() as server:
        server.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        for setting, value in (("pg_stat_statements.track", "'all'"), ("track_io_timing", "on")):
            server.execute(f"ALTER SYSTEM SET {setting} = {value}")
        server.execute("SELECT pg_reload_conf()")
    try:
        with ground.scratch(of=LOADED, to="bench_profile_") as prefix:
            with ground.administrator() as server:
                server.execute("SELECT pg_stat_statements_reset()")
            ran = children.run("dispatcher", "--sample", prefix=prefix, processes=PROCESSES)
            return _statements(prefix, events) + _functions(ran.answers, events)
    finally:
        with ground.administrator() as server:
            for setting in ("pg_stat_statements.track", "track_io_timing"):
                server.execute(f"ALTER SYSTEM RESET {setting}")
            server.execute("SELECT pg_reload_conf()")


def _statements(prefix: str, events: int) -> list[Line]:
    with ground.administrator() as server:
        rows = server.execute(
            "SELECT s.toplevel, s.query, s.calls, s.total_exec_time * 1000 / %s, s.total_plan_time * 1000 / %s,"
            " s.shared_blks_dirtied, s.wal_bytes / %s"
            " FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = %s"
            " ORDER BY s.total_exec_time DESC LIMIT %s",
            [events, events, events, f"{prefix}core", SHOWN],
        ).fetchall()
    return [
        Line(
            "profile",
            f"{'' if top else '  in a trigger or function: '}{' '.join(query.split())[:90]}",
            time,
            "µs",
            note=f"{calls} calls, {wal:.0f} B of WAL each",
        )
        for top, query, calls, time, _, _, wal in rows
    ]


def _functions(answers: list[dict[str, Any]], events: int) -> list[Line]:
    cpu = sum(answer["cpu"] for answer in answers)
    taken = sum(answer["samples"]["count"] for answer in answers) or 1
    lines = []
    for kind, title in (("whole", "in and below"), ("own", "in")):
        counted: Counter[str] = Counter()
        for answer in answers:
            counted.update(dict(answer["samples"][kind]))
        lines += [
            Line("profile", f"{title} {name}", samples / taken * cpu / events * 1e6, "µs")
            for name, samples in counted.most_common(2 * SHOWN)
        ]
    return lines
