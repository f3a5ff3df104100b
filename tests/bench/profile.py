"""Part `profile`: where one drain spends its time, by statement on the server and by function in the client.

Statements that triggers and functions run are listed by themselves too, so the lines do not add up to the whole.
Profiling slows both sides down; the shares hold, the sums do not.
"""

import pstats
import tempfile
from pathlib import Path

from tests.bench import children, ground
from tests.bench.drain import LOADED, PROCESSES, load
from tests.bench.table import Line

SHOWN = 16


def measure(*, quick: bool) -> list[Line]:
    """The most expensive statements and functions, µs per delivery."""
    events = 6_000 if quick else 40_000
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
            with tempfile.TemporaryDirectory() as directory:
                children.run("dispatcher", "--profile", f"{directory}/drain", prefix=prefix, processes=PROCESSES)
                return _statements(prefix, events) + _functions(Path(directory), events)
    finally:
        with ground.administrator() as server:
            server.execute("ALTER SYSTEM RESET ALL")
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


def _functions(directory: Path, events: int) -> list[Line]:
    stats = pstats.Stats(*(str(path) for path in directory.iterdir()))
    own = sorted(
        ((values[2], values[3], name) for name, values in stats.stats.items()),  # type: ignore[attr-defined]  # pstats
        reverse=True,
    )
    return [
        Line(
            "profile",
            f"{Path(file).name}:{line} {function}",
            seconds / events * 1e6,
            "µs",
            note=f"{cumulative / events * 1e6:.1f} µs with what it calls",
        )
        for seconds, cumulative, (file, line, function) in own[: 2 * SHOWN]
    ]
