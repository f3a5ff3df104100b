"""Part `claim`: whether a claim still costs the same at the end of a long backlog as at its beginning.

Three backlogs: plain; while another session holds a snapshot, so that nothing can be vacuumed; and so again among half
a million quarantined rows and half a million that are not due. Retries and expired leases are in all of them.
"""

from statistics import median

from tests.bench import children, claimer, ground, multiply
from tests.bench.size import Size
from tests.bench.table import Line

BACKLOG = "bench_claimload_"
OTHERS = (
    {"status": "'quarantined'", "attempt_count": "1", "lease_token": "1"},
    {"available_at": "now() + interval '1 day' + random() * interval '1 day'"},
)
"""Deliveries that a claim must pass by: quarantined ones, and ones that are not due."""


def measure(size: Size) -> list[Line]:
    """For each backlog the median of the first decile of claims, and the last decile divided by it."""
    deliveries, others = size.of(300_000, least=6_000), size.of(500_000)
    multiply.load(deliveries, prefix=BACKLOG)
    lines = _run("plain", deliveries)
    lines += _run("held snapshot", deliveries, "--hold-snapshot")
    multiply.load(deliveries, prefix=BACKLOG, others=[(others, changes) for changes in OTHERS])
    lines += _run(f"held snapshot, {others:,} quarantined, {others:,} future", deliveries, "--hold-snapshot")
    ground.drop(f"{BACKLOG}core")
    return lines


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
