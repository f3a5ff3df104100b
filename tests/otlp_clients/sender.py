"""A sender that keeps each batch until it is answered 200, as a collector with a queue on disk does."""

import gzip
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import requests

from tests.otlp.make import body, llm

THREADS = 4
PAUSE_SECONDS = 0.05
FIRST = datetime(2026, 3, 4, tzinfo=UTC)
KEPT = frozenset({429, 502, 503, 504})
"""Answers at which a collector keeps its data."""


def batches(events: int, *, size: int, prefix: str) -> list[bytes]:
    """Bodies with events whose ids begin with `prefix`, spread over two hours."""
    step = timedelta(hours=2) / events
    numbered = [llm(f"{prefix}-{number}", at=FIRST + number * step, prompt_tokens=number) for number in range(events)]
    return [gzip.compress(body(numbered[first : first + size]), 1) for first in range(0, events, size)]


def send(bodies: Sequence[bytes], *, url: str, token: str) -> Counter[str]:
    """Send every body until it is answered 200; how often what happened. Raises for an answer that loses data."""
    happened, counting = Counter[str](), threading.Lock()
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/x-protobuf",
        "Content-Encoding": "gzip",
    }
    waiting = threading.Event()

    def note(what: str) -> None:
        with counting:
            happened[what] += 1

    def deliver(share: Sequence[bytes]) -> None:
        with requests.Session() as session:
            for one in share:
                while True:
                    try:
                        answer = session.post(f"{url}/v1/logs", data=one, headers=headers, timeout=60)
                    except requests.ConnectionError:
                        note("connection lost")
                    else:
                        note(str(answer.status_code))
                        if answer.status_code == 200:
                            assert not answer.content, "a record was rejected"
                            break
                        assert answer.status_code in KEPT, answer.status_code
                    waiting.wait(PAUSE_SECONDS)

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(deliver, bodies[first::THREADS]) for first in range(THREADS)]:
            done.result()
    return happened
