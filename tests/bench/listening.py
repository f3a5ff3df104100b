"""A process of ours that answers over HTTP while a part measures it, and how much memory its workers hold."""

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.bench import children


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def answering(
    command: Sequence[str], *, port: int, env: Mapping[str, str], probe: str = "/health/ready"
) -> Iterator[int]:
    """Run it until the context ends; the process id, once `probe` answers."""
    child = subprocess.Popen(command, cwd=children.ROOT, env=env)
    try:
        _wait_until_ready(port, child, probe)
        yield child.pid
    finally:
        child.terminate()
        try:
            child.wait(30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def resident(parent: int) -> list[float]:
    """MiB that each worker process holds now."""
    page = os.sysconf("SC_PAGE_SIZE")
    return [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page / 2**20 for pid in _workers(parent)]


def peak(parent: int) -> list[float]:
    """MiB that each worker process held at most."""
    lines = [Path(f"/proc/{pid}/status").read_text().splitlines() for pid in _workers(parent)]
    return [int(line.split()[1]) / 2**10 for status in lines for line in status if line.startswith("VmHWM:")]


def _workers(parent: int) -> list[str]:
    return Path(f"/proc/{parent}/task/{parent}/children").read_text().split()


def _wait_until_ready(port: int, child: "subprocess.Popen[bytes]", probe: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and child.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{probe}", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"the process did not become ready (exit code {child.poll()})")
