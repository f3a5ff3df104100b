"""Uploads through the web process: how many a second, and how much memory its worker held at most."""

import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from config.replay.calls import Api
from tests.bench import listening
from tests.bench.size import Size
from tests.bench.table import Line

SIZES = {"1 KiB": (2**10, 200), "1 MiB": (2**20, 40), "100 MiB": (100 * 2**20, 3)}
"""Bytes of one upload, and how many of them."""
PER_ITEM = 50


def measure(size: Size, *, token: str, prefix: str) -> list[Line]:
    """One after the other, each with a content of its own, fsynced and committed before its answer."""
    port = listening.free_port()
    tree = Path(os.environ["STATE_DIR"]) / "bench-attachments"
    env = {**os.environ, "DATABASE_NAME_PREFIX": prefix, "ATTACHMENTS_ROOT": str(tree)}
    command = [sys.executable, "-m", "granian", "--interface", "asginl", "--port", str(port), "--log-level", "error"]
    api = Api(f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {token}"})
    lines = []
    for name, (length, full) in SIZES.items():
        count = max(2, int(full * size.share))
        with listening.answering(
            [*command, "config.asgi:application"], port=port, env=env, probe="/health/live"
        ) as parent:
            taken = _upload(api, name, length, count)
            most = max(listening.peak(parent))
        lines += [
            Line("commercial", f"upload of {name}: time of one", median(taken) * 1000, "ms"),
            Line("commercial", f"upload of {name}: most memory of the worker", most, "MiB", goal="< 150"),
        ]
        print(f"  uploads of {name}: {median(taken) * 1000:,.1f} ms, at most {most:.0f} MiB", flush=True)
    return lines


def _upload(api: Api, name: str, length: int, count: int) -> list[float]:
    claim = _made(api, "/claims", {"number": f"bench {name}", "title": "Measured"})["claimId"]
    content, taken = bytearray(os.urandom(length)), []
    for number in range(count):
        if number % PER_ITEM == 0:
            expense = {"description": "Measured", "amountMinor": 1, "currency": "EUR"}
            item = _made(api, f"/claims/{claim}/items", expense)["itemId"]
        content[:8] = number.to_bytes(8, "big")
        started = time.perf_counter()
        answer = api.upload(
            "POST",
            f"/claims/{claim}/items/{item}/attachments",
            name="measured.bin",
            content=bytes(content),
            request_id=f"bench/{length}/{number}",
        )
        taken.append(time.perf_counter() - started)
        if answer.status != 201:  # created
            raise RuntimeError(f"an upload of {name} was answered {answer.status} {answer.body[:200]!r}")
    return taken


def _made(api: Api, path: str, document: dict[str, Any]) -> Any:
    answer = api.send("POST", path, document)
    if answer.status != 201:  # created
        raise RuntimeError(f"{path} was answered {answer.status} {answer.body[:200]!r}")
    return answer.json()
