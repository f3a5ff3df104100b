"""Child, in the environment of the peers: pgqueuer with asyncpg and uvloop, large batches, a no-op handler."""

import os
import sys
import time
from typing import Any

import asyncpg  # type: ignore[import-not-found]  # these three live in the peers' environment
import uvloop
from pgqueuer import AsyncpgDriver, Queries, QueueManager  # type: ignore[import-not-found]  # likewise

from tests.bench import children

BATCH = 500
PAYLOAD = b"x" * 800


async def load(events: int) -> None:
    connection = await asyncpg.connect(os.environ["BENCH_DSN"])
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    for start in range(0, events, 5000):
        count = min(5000, events - start)
        await queries.enqueue(["noop"] * count, [PAYLOAD] * count, [0] * count)
    await connection.execute("VACUUM ANALYZE")
    await connection.close()
    children.wait_for_start()
    children.answer(done=events)


async def drain() -> None:
    from pgqueuer.domain.types import QueueExecutionMode  # type: ignore[import-not-found]  # likewise

    connection = await asyncpg.connect(os.environ["BENCH_DSN"])
    manager = QueueManager(AsyncpgDriver(connection))
    done = 0

    @manager.entrypoint("noop")  # type: ignore[untyped-decorator]  # as above
    async def noop(job: Any) -> None:
        nonlocal done
        done += 1

    children.wait_for_start()
    started = time.perf_counter()
    await manager.run(batch_size=BATCH, mode=QueueExecutionMode.drain)
    children.answer(done=done, seconds=time.perf_counter() - started)
    await connection.close()


if __name__ == "__main__":
    uvloop.run(load(int(sys.argv[2])) if sys.argv[1] == "load" else drain())
