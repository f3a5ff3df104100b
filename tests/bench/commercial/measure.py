"""Part `commercial`: reserve and settle beside the bare statements that they need, and uploads with their memory."""

import os
from statistics import median

from tests.bench import children, ground
from tests.bench.commercial import uploads, world
from tests.bench.size import Size
from tests.bench.table import Line

PREFIX = "bench_commercial_"
OWNERS = ("core", "billing", "attachments")
BILLING = f"{PREFIX}billing"
THREADS = (1, 8, 32)
PAIRS = 4_000
HISTORY = 1_000_000


def measure(size: Size) -> list[Line]:
    """Pairs per second on one entitlement and on a hundred, the same on a long history, and uploads."""
    before = os.environ["DATABASE_NAME_PREFIX"]
    os.environ["DATABASE_NAME_PREFIX"] = PREFIX
    try:
        token = _make_databases()
        lines = [line for threads in THREADS for line in _beside(size, threads=threads)]
        lines += _grown(size)
        lines += uploads.measure(size, token=token, prefix=PREFIX)
    finally:
        for owner in OWNERS:
            ground.drop(f"{PREFIX}{owner}")
        os.environ["DATABASE_NAME_PREFIX"] = before
    return lines


def _make_databases() -> str:
    for owner in OWNERS:
        ground.drop(f"{PREFIX}{owner}")
    children.manage("migrate_owners", *OWNERS, env=dict(os.environ))
    (made,) = children.run("commercial.make_world", prefix=PREFIX).answers
    return str(made["token"])


def _beside(size: Size, *, threads: int) -> list[Line]:
    pairs = size.of(PAIRS if threads > 1 else PAIRS // 2)
    hot: dict[str, list[float]] = {"hooks": [], "locked": [], "ratio": []}
    many: dict[str, list[float]] = {"hooks": [], "plain": [], "ratio": [], "whole": []}
    for _ in range(size.rounds):
        locked, _ = _rate("locked", threads, 1, pairs)
        pair, apart = _rate("hooks", threads, 1, pairs)
        for name, rate in {"hooks": pair, "locked": locked, "ratio": pair / locked}.items():
            hot[name].append(rate)
        plain, _ = _rate("plain", threads, world.TENANTS, pairs)
        pair, _ = _rate("hooks", threads, world.TENANTS, pairs)
        whole, _ = _rate("whole", threads, world.TENANTS, pairs)
        for name, rate in {"hooks": pair, "plain": plain, "ratio": pair / plain, "whole": whole}.items():
            many[name].append(rate)
        print(f"  {threads} threads: hot {hot}, of which {apart}; many {many}", flush=True)
    of = f"{threads} threads" if threads > 1 else "1 thread"
    return [
        Line("commercial", f"{of}, one hot entitlement: pairs", median(hot["hooks"]), "/s"),
        Line("commercial", f"{of}, one hot row: bare UPDATE", median(hot["locked"]), "/s"),
        Line("commercial", f"{of}, hot: pairs to bare UPDATE", median(hot["ratio"]), "×", goal="≥ 0.5"),
        Line("commercial", f"{of}, 100 entitlements: pairs", median(many["hooks"]), "/s"),
        Line("commercial", f"{of}, two plain transactions of one row", median(many["plain"]), "/s"),
        Line("commercial", f"{of}, 100: pairs to the two plain ones", median(many["ratio"]), "×", goal="≥ 0.7"),
        Line("commercial", f"{of}, 100: whole business transactions", median(many["whole"]), "/s"),
    ]


def _grown(size: Size) -> list[Line]:
    """The same hot entitlement before and after its history has grown."""
    pairs, events = size.of(PAIRS), size.of(HISTORY, least=10_000)
    young = median(_rate("hooks", 8, 1, pairs)[0] for _ in range(size.rounds))
    world.grow_history(BILLING, events=events)
    old = median(_rate("hooks", 8, 1, pairs)[0] for _ in range(size.rounds))
    what = f"8 threads, hot: rate after {events:,} usage events to before"
    return [Line("commercial", what, old / young, "×", goal="≥ 1", note=f"{young:,.0f}/s, {old:,.0f}/s")]


def _rate(work: str, threads: int, entitlements: int, pairs: int) -> tuple[float, dict[str, float]]:
    """Pairs per second over what is compared, and the seconds of each phase."""
    shape = ("--work", work, "--threads", str(threads), "--entitlements", str(entitlements), "--pairs", str(pairs))
    (seconds,) = children.run("commercial.pairs", *shape, prefix=PREFIX).answers
    compared = sum(taken for phase, taken in seconds.items() if phase != "mark")
    return pairs / compared, seconds
