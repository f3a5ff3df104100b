"""The rate of a cluster: sustained and burst across processes, exact words, and a lost limiter that loses nothing."""

import secrets
import threading
import time
from typing import Any

import pytest

from metering.otlp.limiter import RETRY_AFTER, Limiter, retry_after
from tests.crash.processes import Crew
from tests.otlp.make import body, llm
from tests.otlp.server import Server, start
from tests.otlp.storing import stored


def unused() -> int:
    """A cluster whose bucket no earlier run has touched."""
    return secrets.randbelow(10**15) + 10**6


@pytest.mark.spec("T9")
def test_above_the_burst_a_request_is_answered_429_with_the_words_of_the_contract(
    server: Server, make_token: Any
) -> None:
    token = make_token(unused(), rate_per_second=1, rate_burst=3)
    before = server.counted("otlp_rate_limited_total")
    found = [server.post(body([llm()]), token=token) for _ in range(8)]
    refused = [answer for answer in found if answer.status == 429]
    assert 4 <= len(refused) <= 5
    for answer in refused:
        assert answer.body == b'{"code":42900,"message":"too many requests"}'
        assert answer.headers["content-type"] == "application/json"
        assert 1 <= int(answer.headers["retry-after"]) <= 5
    assert stored() == len(found) - len(refused)
    assert server.counted("otlp_rate_limited_total") == before + len(refused)
    assert '"event": "otlp_rate_limited"' in server.parent.said()


@pytest.mark.spec("T9")
def test_processes_share_the_bucket_and_clusters_do_not(server: Server, make_token: Any) -> None:
    limited, free = make_token(unused(), rate_per_second=1, rate_burst=20), make_token(unused())
    statuses: list[int] = []

    def send() -> None:
        for _ in range(10):
            statuses.append(server.post(body([llm()]), token=limited).status)

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 20 <= statuses.count(200) < 40
    assert set(statuses) == {200, 429}
    assert server.post(body([llm()]), token=free).status == 200


@pytest.mark.spec("T9")
def test_a_refused_token_costs_its_cluster_nothing(server: Server, make_token: Any) -> None:
    token = make_token(unused(), rate_per_second=1, rate_burst=2)
    for _ in range(5):
        assert server.post(body([llm()]), token="wrong").status == 401
    assert server.post(body([llm()]), token=token).status == 200


@pytest.mark.spec("T9")
def test_losing_the_store_of_the_limiter_loses_no_event_and_each_process_measures_alone(
    crew: Crew, make_token: Any
) -> None:
    free, limited = make_token(unused()), make_token(unused(), rate_per_second=1, rate_burst=4)
    alone = start(crew, REDIS_URL="redis://127.0.0.1:1/0")
    assert {alone.post(body([llm()]), token=free).status for _ in range(30)} == {200}
    assert stored() == 30
    statuses = [alone.post(body([llm()]), token=limited).status for _ in range(12)]
    assert statuses[:4] == [200] * 4
    assert 429 in statuses
    assert "otlp_limiter_lost" in alone.parent.said()
    assert alone.counted("otlp_limiter_lost_total") == 42


def test_the_defaults_are_those_of_the_contract(settings: Any) -> None:
    from config import settings as module

    assert (module.OTLP_RATE_PER_SECOND, module.OTLP_RATE_BURST) == (100, 200)


def test_the_store_measures_to_the_token(settings: Any) -> None:
    limiter = Limiter(url=settings.REDIS_URL)
    cluster, other = unused(), unused()
    began = time.monotonic()
    taken = sum(limiter.admits(cluster, per_second=1, burst=200) for _ in range(300))
    assert 200 <= taken <= 201 + (time.monotonic() - began)
    assert limiter.admits(other, per_second=1, burst=200)


def test_retry_after_is_spread_over_whole_seconds() -> None:
    assert {retry_after() for _ in range(500)} == {str(second) for second in range(RETRY_AFTER[0], RETRY_AFTER[1] + 1)}
    assert RETRY_AFTER == (1, 5)
