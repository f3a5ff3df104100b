"""Part `latency`: from an event's commit to the commit of its receipt, through a real Celery worker.

The server itself says when a receipt was committed (`track_commit_timestamp`). Once with the wake-up on commit, once
with every wake-up lost, so that the beat has to find the events.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import quantiles

import redis

from tests.bench import children, ground
from tests.bench.size import Size
from tests.bench.table import Line

RATE = 50
WORKER = ("worker", "--pool", "prefork", "--concurrency", "2", "--queues", "owner.core")
QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
NO_BROKER = {"REDIS_URL": "redis://127.0.0.1:1/0"}
"""For the appending process: nothing listens there, so its wake-ups are lost."""
COMMITTED = """
SELECT event_id::text, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8
  FROM operations_projection_applied_receipts
"""


def measure(size: Size) -> list[Line]:
    """Percentiles with the wake-up, and the longest wait without one."""
    from django.conf import settings

    seconds = max(3, 60 * size.share)
    redis.Redis.from_url(os.environ["REDIS_URL"]).flushdb()  # wake-ups of other parts
    with ground.scratch(of=ground.EMPTY, to="bench_latency_") as prefix, _celery(prefix, *WORKER, *QUIET):
        _stream(prefix, seconds=2)
        woken = _stream(prefix, seconds=seconds)
        schedule = os.path.join(os.environ["STATE_DIR"], "beat-schedule")  # noqa: PTH118  # celery takes a text
        with _celery(prefix, "beat", "--schedule", schedule, "--pidfile="):
            _stream(prefix, seconds=1, env=NO_BROKER)  # ends when the beat has fired
            found = _stream(prefix, seconds=seconds / 3, env=NO_BROKER)
    hundredths = quantiles(woken, n=100)
    return [
        Line("latency", f"commit to committed receipt at {RATE}/s, p50", hundredths[49] * 1000, "ms", goal="< 15"),
        Line("latency", f"commit to committed receipt at {RATE}/s, p99", hundredths[98] * 1000, "ms", goal="< 80"),
        Line("latency", "longest", max(woken) * 1000, "ms"),
        Line(
            "latency",
            "longest without a wake-up",
            max(found) * 1000,
            "ms",
            goal=f"one beat: ≤ {settings.OUTBOX_BEAT_EVERY * 1000:,.0f}",
        ),
    ]


@contextmanager
def _celery(prefix: str, *arguments: str) -> Iterator[None]:
    child = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "config.celery", *arguments],
        cwd=children.ROOT,
        env={**os.environ, "DATABASE_NAME_PREFIX": prefix},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        child.terminate()
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _stream(prefix: str, *, seconds: float, env: dict[str, str] | None = None) -> list[float]:
    """Seconds from commit to receipt of every event of a stream, once all receipts are there."""
    ran = children.run("stream", "--rate", str(RATE), "--seconds", str(seconds), prefix=prefix, env=env)
    committed: dict[str, float] = ran.answers[0]["committed"]
    deadline = time.monotonic() + 60
    with ground.administrator(f"{prefix}core") as connection:
        while True:
            received = dict(connection.execute(COMMITTED).fetchall())
            if committed.keys() <= received.keys():
                return [received[event_id] - at for event_id, at in committed.items()]
            if time.monotonic() > deadline:
                missing = len(committed.keys() - received.keys())
                raise RuntimeError(f"{missing} of {len(committed)} events have no receipt after a minute")
            time.sleep(0.2)
