"""The task that procrastinate drains; it wants its App in a module that another process could import."""

import os

from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found]  # the peers' environment

CONCURRENCY = 20

app = App(connector=PsycopgConnector(conninfo=os.environ["BENCH_DSN"], min_size=4, max_size=CONCURRENCY))
done: list[None] = []


@app.task(name="noop")  # type: ignore[untyped-decorator]  # as above
async def noop(payload: str) -> None:
    """Do nothing, once more."""
    done.append(None)
