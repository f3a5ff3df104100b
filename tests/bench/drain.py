"""Part `drain`: a preloaded backlog through two real dispatchers, beside the bare loop over the same statements."""

from dataclasses import dataclass
from statistics import median

from tests.bench import children, ground, processor
from tests.bench.size import Size
from tests.bench.table import Line

LOADED = "bench_loaded_"
PROCESSES = 2


def load(events: int) -> float:
    """The template with a backlog of `events` deliveries; appended events per second."""
    ground.copy(of=ground.EMPTY, to=LOADED)
    ran = children.run("preload", "--events", str(events // PROCESSES), prefix=LOADED, processes=PROCESSES)
    ground.settled(f"{LOADED}core")
    return ran.total("events") / ran.seconds


@dataclass(frozen=True, slots=True)
class Drain:
    """One drain of one backlog."""

    rate: float
    """Deliveries per second, from the common start to the last answer."""
    client: float
    """Processor time of the draining processes, µs per delivery."""
    server: float
    """Processor time of the database server, µs per delivery."""


def drain(work: str, *arguments: str, events: int, number: int) -> Drain:
    """Drain a fresh copy of the backlog with `PROCESSES` children that do `work`."""
    with ground.scratch(of=LOADED, to=f"bench_{work.replace('_', '')}{number}_") as prefix:
        before = processor.used_by_server()
        ran = children.run(work, *arguments, prefix=prefix, processes=PROCESSES)
        after = processor.used_by_server()
    if ran.total("acknowledged") != events:
        raise RuntimeError(f"{work} acknowledged {ran.total('acknowledged'):.0f} of {events} deliveries: {ran.answers}")
    server = (after - before) / events * 1e6 if before is not None and after is not None else 0.0
    done = Drain(events / ran.seconds, ran.total("cpu") / events * 1e6, server)
    print(
        f"  {work}: {done.rate:,.0f}/s, µs of processor: {done.client:.0f} client, {done.server:.0f} server", flush=True
    )
    return done


def measure(size: Size) -> list[Line]:
    """Rates and their ratio, medians of interleaved rounds."""
    events = size.of(60_000, least=2_000)
    load(events)
    ours: list[Drain] = []
    bare: list[Drain] = []
    for number in range(size.rounds):
        pair = [("bare_loop", bare), ("dispatcher", ours)]
        for work, found in pair if number % 2 else reversed(pair):  # neither is always the first of its round
            found.append(drain(work, events=events, number=number))
    ratio = median(o.rate / b.rate for o, b in zip(ours, bare, strict=True))
    return [
        Line("drain", "deliveries, full work, 2 processes", median(one.rate for one in ours), "/s", goal="≥ 5,000"),
        Line("drain", "bare psycopg loop, same statements", median(one.rate for one in bare), "/s"),
        Line("drain", "ours to bare loop", ratio, "×", goal="≥ 0.8"),
        Line("drain", "processor time of a dispatcher", median(one.client for one in ours), "µs/delivery"),
        Line("drain", "processor time of its server", median(one.server for one in ours), "µs/delivery"),
        Line("drain", "processor time of a bare loop", median(one.client for one in bare), "µs/delivery"),
        Line("drain", "processor time of its server", median(one.server for one in bare), "µs/delivery"),
    ]
