"""Child, in the environment of the peers: procrastinate with concurrent asynchronous no-op tasks in each process."""

import asyncio
import os
import sys
import time
from importlib import import_module

from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found]  # the peers' environment

from tests.bench import children

CONCURRENCY = 20
PAYLOAD = "x" * 800

app = App(connector=PsycopgConnector(conninfo=os.environ["BENCH_DSN"], min_size=4, max_size=CONCURRENCY))
done = 0


@app.task(name="noop")  # type: ignore[untyped-decorator]  # as above
async def noop(payload: str) -> None:
    global done  # noqa: PLW0603  # the task is a module's function by procrastinate's design
    done += 1


async def load(events: int) -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for start in range(0, events, 1000):
            count = min(1000, events - start)
            await noop.batch_defer_async(*({"payload": PAYLOAD} for _ in range(count)))
    children.wait_for_start()
    children.answer(done=events)


async def drain() -> None:
    async with app.open_async():
        children.wait_for_start()
        started = time.perf_counter()
        await app.run_worker_async(
            wait=False, concurrency=CONCURRENCY, listen_notify=False, install_signal_handlers=False
        )
        children.answer(done=done, seconds=time.perf_counter() - started)


def main() -> None:
    asyncio.run(load(int(sys.argv[2])) if sys.argv[1] == "load" else drain())


if __name__ == "__main__":
    # procrastinate warns about an App of the main module, whose tasks another process could not import.
    import_module("tests.bench.peer_procrastinate").main()
