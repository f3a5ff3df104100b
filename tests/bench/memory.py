"""Part `memory`: the resident memory of one dispatcher with the real projector over a long drain."""

from statistics import median

from tests.bench import children, ground, multiply
from tests.bench.size import Size
from tests.bench.table import Line

BACKLOG = "bench_memory_"


def measure(size: Size) -> list[Line]:
    """Its peak, and the last tenth of the drain against the second tenth: the first still fills caches."""
    deliveries = size.of(300_000, least=2_000)
    multiply.load(deliveries, prefix=BACKLOG)
    ran = children.run("dispatcher", "--watch-memory", prefix=BACKLOG)
    ground.drop(f"{BACKLOG}core")
    answer = ran.answers[0]
    if answer["acknowledged"] != deliveries:
        raise RuntimeError(f"memory: {answer['acknowledged']} of {deliveries} deliveries were acknowledged")
    seen: list[float] = answer["resident_mib"]
    tenth = max(1, len(seen) // 10)
    growth = median(seen[-tenth:]) - median(seen[tenth : 2 * tenth] or seen)
    return [
        Line("memory", f"dispatcher, peak over {deliveries:,} events", answer["peak_mib"], "MiB", goal="≤ 200"),
        Line("memory", "growth from the second to the last tenth", growth, "MiB", goal="flat"),
    ]
