"""Child: sends prebuilt bodies over keep-alive connections, as fast as answers come or at a steady rate.

Reads the token from the environment. `again` sends the same bodies a second time, so that every record is a duplicate.
"""

import argparse
import http.client
import os
import threading
import time
from collections.abc import Sequence

from tests.bench import children
from tests.bench.telemetry.bodies import bodies

HEADERS = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--rate", type=float, help="Requests per second; as fast as possible without.")
    chosen = parser.parse_args()
    made = list(bodies(records=chosen.records, batch=chosen.batch, seed=chosen.seed, ends_at=int(time.time())))
    children.wait_for_start()
    first, waits = _send(made, chosen.port, chosen.connections, chosen.rate)
    again = 0.0 if chosen.rate else _send(made, chosen.port, chosen.connections, None)[0]
    children.answer(first=first, again=again, waits=waits)


def _send(made: Sequence[bytes], port: int, connections: int, rate: float | None) -> tuple[float, list[float]]:
    """Seconds until everything was answered, and how long each answer took from when it was due."""
    waits: list[float] = []
    failed: list[str] = []
    turn = iter(range(len(made)))
    lock = threading.Lock()
    started = time.perf_counter()

    def work() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {**HEADERS, "Authorization": f"Bearer {os.environ['OTLP_BENCH_TOKEN']}"}
        while True:
            with lock:
                index = next(turn, None)
            if index is None:
                return
            due = started + index / rate if rate else time.perf_counter()
            time.sleep(max(0.0, due - time.perf_counter()))
            connection.request("POST", "/v1/logs", made[index], headers)
            answer = connection.getresponse()
            answer.read()
            waits.append(time.perf_counter() - due)
            if answer.status != http.client.OK:
                failed.append(f"{answer.status} to request {index}")

    threads = [threading.Thread(target=work) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise SystemExit(f"{len(failed)} requests were refused, first {failed[0]}")
    return time.perf_counter() - started, waits


if __name__ == "__main__":
    main()
