"""Child, in the environment of the peers: procrastinate with concurrent asynchronous no-op tasks in each process."""

import asyncio
import sys
import time

from tests.bench import children
from tests.bench.procrastinate_app import CONCURRENCY, app, done, noop

PAYLOAD = "x" * 800


async def load(events: int) -> None:
    """Apply its schema and defer the jobs."""
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for start in range(0, events, 1000):
            count = min(1000, events - start)
            await noop.batch_defer_async(*({"payload": PAYLOAD} for _ in range(count)))
    children.wait_for_start()
    children.answer(done=events)


async def drain() -> None:
    """Work until nothing is left."""
    async with app.open_async():
        children.wait_for_start()
        started = time.perf_counter()
        await app.run_worker_async(
            wait=False, concurrency=CONCURRENCY, listen_notify=False, install_signal_handlers=False
        )
        children.answer(done=len(done), seconds=time.perf_counter() - started)


if __name__ == "__main__":
    asyncio.run(load(int(sys.argv[2])) if sys.argv[1] == "load" else drain())
