"""Part `claim`: whether a claim still costs the same at the end of a long backlog as at its beginning.

Three backlogs: plain; while another session holds a snapshot, so that nothing can be vacuumed; and so again among half
a million quarantined rows and half a million that are not due. Retries and expired leases are in all of them.
"""

from dataclasses import dataclass
from statistics import mean, median

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
    """For each backlog the first decile of its claims, and the last divided by it."""
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
    claims = [claim for claim in answer["claims"] if claim[2] >= claimer.BATCH]
    first, last = _tenth(claims, first=True), _tenth(claims, first=False)
    print(f"  {name}: {first} to {last}, {answer['recovered']} leases recovered", flush=True)
    lines = [Line("claim", f"{name}: {claimer.BATCH} rows, first decile", first.waited, "ms")]
    if first.worked:
        ratio = last.worked / first.worked
        lines.append(Line("claim", f"{name}: last decile to first, processor time", ratio, "×", goal="≤ 1.5"))
    ratio = last.waited / first.waited
    return [*lines, Line("claim", f"{name}: last decile to first, elapsed", ratio, "×", goal="≤ 1.5")]


@dataclass(frozen=True, slots=True)
class Tenth:
    """A tenth of the claims of one drain, ms for a whole batch."""

    waited: float
    """Median of the time that the claimer waited."""
    worked: float
    """Mean processor time of the server's process, which other load on the machine hardly changes."""

    def __str__(self) -> str:
        return f"{self.waited:.1f} ms ({self.worked:.1f} of processor)"


def _tenth(claims: list[list[float]], *, first: bool) -> Tenth:
    count = max(1, len(claims) // 10)
    chosen = claims[:count] if first else claims[-count:]
    batches = [claimer.BATCH / rows * 1000 for _, _, rows in chosen]
    return Tenth(
        waited=median(claim[0] * batch for claim, batch in zip(chosen, batches, strict=True)),
        worked=mean(claim[1] * batch for claim, batch in zip(chosen, batches, strict=True)),
    )
