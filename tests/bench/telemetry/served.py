"""A real receiver for the benchmark: its databases, a cluster with a token, its processes, and their memory."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench import children, ground

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
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    child = subprocess.Popen(
        [sys.executable, "manage.py", "receive_telemetry"], cwd=children.ROOT, env=environment(port)
    )
    try:
        _wait_until_ready(port, child)
        yield port, child.pid
    finally:
        child.terminate()
        try:
            child.wait(30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _wait_until_ready(port: int, child: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and child.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"the receiver did not become ready (exit code {child.poll()})")


def resident(parent: int) -> list[float]:
    """MiB of each process that answers."""
    page = os.sysconf("SC_PAGE_SIZE")
    found = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page / 2**20 for pid in found]
