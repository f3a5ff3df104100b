"""Part `drain`: a preloaded backlog through two real dispatchers, beside the bare loop over the same statements."""

from statistics import median

from tests.bench import children, ground
from tests.bench.table import Line

LOADED = "bench_loaded_"
PROCESSES = 2


def load(events: int) -> float:
    """The template with a backlog of `events` deliveries; appended events per second."""
    ground.copy(of=ground.EMPTY, to=LOADED)
    ran = children.run("preload", "--events", str(events // PROCESSES), prefix=LOADED, processes=PROCESSES)
    ground.settled(f"{LOADED}core")
    return ran.total("events") / ran.seconds


def rate(work: str, *arguments: str, events: int, number: int) -> float:
    """Deliveries per second of one drain on a fresh copy."""
    with ground.scratch(of=LOADED, to=f"bench_{work.replace('_', '')}{number}_") as prefix:
        ran = children.run(work, *arguments, prefix=prefix, processes=PROCESSES)
    if ran.total("acknowledged") != events:
        raise RuntimeError(f"{work} acknowledged {ran.total('acknowledged'):.0f} of {events} deliveries: {ran.answers}")
    cpu = ran.total("cpu") / events * 1e6
    print(f"  {work}: {events / ran.seconds:,.0f}/s, {cpu:.0f} µs client CPU per delivery", flush=True)
    return events / ran.seconds


def measure(*, quick: bool) -> list[Line]:
    """Rates and their ratio, medians of interleaved rounds."""
    events, rounds = (6_000, 1) if quick else (60_000, 3)
    load(events)
    ours, bare = [], []
    for number in range(rounds):
        bare.append(rate("bare_loop", events=events, number=number))
        ours.append(rate("dispatcher", events=events, number=number))
    return [
        Line("drain", "deliveries, full work, 2 processes", median(ours), "/s", goal="≥ 5,000"),
        Line("drain", "bare psycopg loop, same statements", median(bare), "/s"),
        Line("drain", "ours to bare loop", median(o / b for o, b in zip(ours, bare, strict=True)), "×", goal="≥ 0.8"),
    ]
