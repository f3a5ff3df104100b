"""Part `append`: events per second from one process, one event per transaction and a hundred per transaction."""

from statistics import median

from tests.bench import children, ground, processor
from tests.bench.size import Size
from tests.bench.table import Line


def measure(size: Size) -> list[Line]:
    """Rates of the transactions alone; the events are made before each of them."""
    shapes = {1: size.of(4_000), 100: size.of(20_000)}
    rates: dict[int, list[float]] = {bulk: [] for bulk in shapes}
    costs: dict[int, list[float]] = {bulk: [] for bulk in shapes}
    for _ in range(size.rounds):
        for bulk, events in shapes.items():
            with ground.scratch(of=ground.EMPTY, to="bench_append_") as prefix:
                before = processor.used_by_server()
                ran = children.run("preload", "--events", str(events), "--bulk", str(bulk), prefix=prefix)
                after = processor.used_by_server()
            rates[bulk].append(events / ran.total("appending"))
            server = (after - before) / events * 1e6 if before is not None and after is not None else 0.0
            costs[bulk].append(ran.total("cpu") / events * 1e6 + server)
            print(
                f"  bulk of {bulk}: {rates[bulk][-1]:,.0f} events/s, µs of processor: "
                f"{ran.total('cpu') / events * 1e6:.0f} client, {server:.0f} server",
                flush=True,
            )
    return [
        Line("append", "one event per transaction, 1 process", median(rates[1]), "/s", goal="≥ 800"),
        Line("append", "100 events per transaction, 1 process", median(rates[100]), "/s", goal="≥ 5,000"),
        Line("append", "processor time of one, client and server", median(costs[1]), "µs/event"),
        Line("append", "processor time of one in a hundred", median(costs[100]), "µs/event"),
    ]
