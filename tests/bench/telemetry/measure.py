"""Part `telemetry`: new records and duplicates per second over HTTP, beside the same work without it and its ceilings.

Two receiver processes and one sender share the machine; bodies are built and compressed before the clock starts, every
answer comes after its commit.
"""

import http.client
import os
import threading
import time
from itertools import count
from statistics import median, quantiles

from tests.bench import children, listening
from tests.bench.size import Size
from tests.bench.table import Line
from tests.bench.telemetry import served
from tests.bench.telemetry.bodies import large_body
from tests.bench.telemetry.ceiling import copied_per_second

BATCHES = (500, 5_000)
RECORDS = 60_000
FLOOR = 12_000
"""Records per second that must be reached; waits are measured at half of it, and at half of what was reached."""
WAITS, WARMING = 600, 40
LARGE_AT_ONCE = 6
SEEDS = count(1)


def measure(size: Size) -> list[Line]:
    """Rates by batch size, the wait at half the load, memory, and what bounds them."""
    token = served.make_databases()
    os.environ[served.TOKEN] = token
    records = size.of(RECORDS, least=2 * max(BATCHES))
    rates: dict[int, dict[str, list[float]]] = {batch: {} for batch in BATCHES}
    try:
        for _ in range(size.rounds):
            for batch in BATCHES:
                _round(rates[batch], records=records, batch=batch)
        lines = [line for batch in BATCHES for line in _rates(batch, rates[batch])]
        for load in (FLOOR / 2, median(rates[500]["new"]) / 2):
            lines += _wait(size.of(WAITS, least=200), rate=load / 500)
        lines += _memory(token)
        copied = copied_per_second()
    finally:
        del os.environ[served.TOKEN]
        served.drop_databases()
    return [*lines, Line("telemetry", "ceiling: raw COPY of the same rows, nothing checked", copied, "/s")]


def _round(rates: dict[str, list[float]], *, records: int, batch: int) -> None:
    shape = ("--records", str(records), "--batch", str(batch))
    with served.receiver() as (port, _):
        sent = children.run(
            "telemetry.sender", *shape, "--port", str(port), "--seed", str(next(SEEDS)), prefix=served.PREFIX
        )
    half = ("--records", str(records // served.PROCESSES), "--batch", str(batch))
    env = served.environment()
    seeds = [("--seed", str(next(SEEDS))) for _ in range(served.PROCESSES)]
    direct, decoded = (
        children.run(
            "telemetry.direct",
            *half,
            *only,
            prefix=served.PREFIX,
            processes=served.PROCESSES,
            env=env,
            different=seeds,
        )
        for only in ((), ("--only-decode",))
    )
    found = {
        "new": records / sent.total("first"),
        "again": records / sent.total("again"),
        "direct": direct.total("accepted") / direct.seconds,
        "decoded": decoded.total("accepted") / decoded.seconds,
    }
    for name, rate in found.items():
        rates.setdefault(name, []).append(rate)
    print(f"  batches of {batch:,}: " + ", ".join(f"{name} {rate:,.0f}/s" for name, rate in found.items()), flush=True)


def _rates(batch: int, rates: dict[str, list[float]]) -> list[Line]:
    new, again, direct, decoded = (median(rates[name]) for name in ("new", "again", "direct", "decoded"))
    ratio = median(one / other for one, other in zip(rates["new"], rates["direct"], strict=True))
    of = f"in batches of {batch:,}"
    return [
        Line("telemetry", f"new records over HTTP {of}", new, "/s", goal="≥ 12,000"),
        Line("telemetry", f"duplicates over HTTP {of}", again, "/s", goal="≥ 15,600"),
        Line("telemetry", f"the same work without HTTP {of}", direct, "/s"),
        Line("telemetry", f"over HTTP to without {of}", ratio, "×", goal="≥ 0.7"),
        Line("telemetry", f"ceiling: inflating and decoding alone {of}", decoded, "/s"),
    ]


def _wait(requests: int, *, rate: float) -> list[Line]:
    """At a steady rate, from when each request was due; the first of a receiver's life are not looked at."""
    with served.receiver() as (port, _):
        records = (requests + WARMING) * 500
        shape = ("--records", str(records), "--batch", "500", "--port", str(port), "--rate", str(rate))
        sent = children.run("telemetry.sender", *shape, "--seed", str(next(SEEDS)), prefix=served.PREFIX)
    hundredths = quantiles(sent.answers[0]["waits"][WARMING:], n=100)
    what = f"answer to 500 records at {rate:.1f} requests/s"
    return [
        Line("telemetry", f"{what}, p50", hundredths[49] * 1000, "ms"),
        Line("telemetry", f"{what}, p99", hundredths[98] * 1000, "ms", goal="< 150"),
    ]


def _memory(token: str) -> list[Line]:
    body, seen, done = large_body(), [0.0], threading.Event()
    statuses: list[int] = []
    with served.receiver() as (port, parent):

        def watch() -> None:
            while not done.wait(0.05):
                seen.append(max(listening.resident(parent), default=0.0))

        def post() -> None:
            headers = {"Content-Type": "application/x-protobuf", "Authorization": f"Bearer {token}"}
            for _ in range(3):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
                connection.request("POST", "/v1/logs", body, headers)
                statuses.append(connection.getresponse().status)
                connection.close()
                time.sleep(0.2)

        watcher = threading.Thread(target=watch)
        posts = [threading.Thread(target=post) for _ in range(LARGE_AT_ONCE)]
        for thread in (watcher, *posts):
            thread.start()
        for thread in posts:
            thread.join()
        done.set()
        watcher.join()
    note = ", ".join(f"{statuses.count(status)} × {status}" for status in sorted(set(statuses)))
    what = f"memory of a process, {LARGE_AT_ONCE} bodies of 8 MiB at once"
    return [Line("telemetry", what, max(seen), "MiB", goal="≤ 300", note=note)]
