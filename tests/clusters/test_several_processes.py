"""Deadlines and revocations are exact in every process that answers for clusters (T10)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from threading import Event

import pytest
from django.db import connections

from metering.clusters.revoke import revoke
from metering.clusters.rotate import Rotated
from metering.clusters.secret_store import FileStore, Slot
from tests.clusters.asker import Asker
from tests.clusters.conftest import ACTOR, database_time, outcome

pytestmark = [pytest.mark.spec("T2"), pytest.mark.trap("T10")]
PROCESSES = 3
LAG = 3
"""How many rotations a collector lies behind the secret store, which is far more than grace allows."""
ROTATIONS = 12


def test_every_process_is_exact_about_deadlines_and_knows_of_a_revocation_at_once(
    rotated: Callable[[], Rotated],
) -> None:
    first, second, third = rotated(), rotated(), rotated()
    deadline = second.superseded[0].expires_at
    with ExitStack() as stack:
        askers = [stack.enter_context(Asker()) for _ in range(PROCESSES)]

        def everywhere(done: Rotated, at: timedelta) -> set[str]:
            return {asker.outcome(done.plaintext.text, deadline + at) for asker in askers}

        for done in (first, second, third):
            assert everywhere(done, -timedelta(microseconds=1)) == {"accepted"}
        assert everywhere(first, timedelta()) == {"token_expired"}
        assert everywhere(second, timedelta()) == {"accepted"}
        for done in (second, third):
            revoke(cluster_id=7, token_id=done.token_id, actor=ACTOR)
            assert everywhere(done, -timedelta(hours=1)) == {"token_revoked"}
        fourth = rotated()
        assert everywhere(fourth, -timedelta(hours=1)) == {"accepted"}


def test_no_record_is_refused_while_collectors_follow_many_rotations_late(
    rotated: Callable[[], Rotated], store: FileStore
) -> None:
    rotated()
    ended, taken_up = Event(), [str(store.read(cluster_id=7, slot=Slot.PRIMARY))]

    def collector(lag: int) -> list[str]:
        seen: list[str] = []
        try:
            while not ended.is_set() or len(seen) < ROTATIONS:
                token = taken_up[max(0, len(taken_up) - 1 - lag)]
                seen.append(outcome(b"Bearer " + token.encode(), database_time()))
        finally:
            connections.close_all()
        return seen

    with ThreadPoolExecutor(LAG) as pool:
        sending = [pool.submit(collector, lag) for lag in range(LAG)]
        try:
            for _ in range(ROTATIONS):
                rotated()
                taken_up.append(str(store.read(cluster_id=7, slot=Slot.PRIMARY)))
        finally:
            ended.set()
        seen = {result for future in sending for result in future.result(60)}
    assert seen == {"accepted"}
