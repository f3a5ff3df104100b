"""A real receiver for the benchmark: its databases, a cluster with a token, its processes, and their memory."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench import children, ground, listening

PREFIX = "bench_telemetry_"
DATABASE = f"{PREFIX}telemetry"
TOKEN = "OTLP_BENCH_TOKEN"  # the name of a variable
OWNERS = ("metering", "telemetry", "billing")
PROCESSES = 2


def environment(port: int = 0) -> dict[str, str]:
    """What receiver and children of this part run with."""
    return {
        **os.environ,
        "DATABASE_NAME_PREFIX": PREFIX,
        "OTLP_PORT": str(port),
        "OTLP_PROCESSES": str(PROCESSES),
        "OTLP_SINK_TYPE": "timescale",
        "OTLP_RATE_PER_SECOND": "100000",
        "OTLP_RATE_BURST": "100000",
        "OTLP_SECRET_DIR": str(Path(os.environ["STATE_DIR"]) / "bench-secrets"),
    }


def make_databases() -> str:
    """New databases, and the token of cluster 1."""
    for owner in OWNERS:
        ground.drop(f"{PREFIX}{owner}")
    children.manage("migrate_owners", *OWNERS, env=environment())
    children.manage("clusters", "create", "1", "--name", "bench", "--mode", "gateway", env=environment())
    for line in children.manage("otlp_tokens", "rotate", "1", env=environment()).splitlines():
        for word in line.split():
            if word.startswith("otlp_"):
                return word
    raise RuntimeError("the rotation printed no token")


def drop_databases() -> None:
    """Take them away."""
    for owner in OWNERS:
        ground.drop(f"{PREFIX}{owner}")


@contextmanager
def receiver() -> Iterator[tuple[int, int]]:
    """A receiver that answers; its port and the process id of the parent."""
    port = listening.free_port()
    command = [sys.executable, "manage.py", "receive_telemetry"]
    with listening.answering(command, port=port, env=environment(port)) as parent:
        yield port, parent
