"""The one drain path of a producer: claim short, work free, settle short, until nothing is due (O1, O19).

One `Dispatcher` is one worker: it works one batch at a time, destination after destination, and holds no row lock and
no transaction while it delivers. More throughput is more workers. The same loop runs in a Celery task and in
`manage.py dispatch`. A destination without a bound consumer is not claimed; it is reported as `awaiting_consumer`.
"""

import os
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import structlog
from django.conf import settings
from django.db import connections

from config.owners import Owner, consumers
from outbox import drain, measure, metrics, steps
from outbox.claim import Claimer
from outbox.contracts.delivery import RetryClass
from outbox.deliver import deliver
from outbox.members import Members
from outbox.renew import Heartbeat
from outbox.rows import Claimed, Retry, Settlement
from outbox.settle import Settled, settle
from outbox.transport import Transport, transport

log = structlog.get_logger("outbox.dispatch")


@dataclass(slots=True)
class Drained:
    """What a run of the loop came to."""

    claimed: int = 0
    recovered: int = 0
    acknowledged: int = 0
    retried: int = 0
    quarantined: int = 0
    fenced: int = 0
    batches: int = 0

    def add(self, settled: Settled) -> None:
        """Count one settled batch."""
        self.acknowledged += settled.acknowledged
        self.retried += settled.retried
        self.quarantined += settled.quarantined
        self.fenced += len(settled.fenced)
        self.batches += 1


def bound_destinations() -> tuple[str, ...]:
    """Destinations that some consumer of this deployment answers."""
    return tuple(consumer.destination for _, consumer in consumers() if consumer.handler)


class Dispatcher:
    """One worker of one producer. Use it as a context; not shared between threads."""

    def __init__(self, owner: Owner, *, deliver_through: Transport | None = None) -> None:
        if not owner.produces:
            raise ValueError(f"{owner.name} produces no events; there is nothing to dispatch.")
        self.owner = owner
        self.transport = deliver_through or transport()
        self.worker = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
        self._claimer = Claimer(
            worker=self.worker,
            members=Members(owner.dispatch_alias),
            batch=settings.OUTBOX_BATCH_SIZE,
            lease=settings.OUTBOX_LEASE,
            full_scan_every=settings.OUTBOX_FULL_SCAN_EVERY,
        )
        self._heartbeat = Heartbeat(
            using=owner.dispatch_alias,
            producer=owner.name,
            every=settings.OUTBOX_RENEW_EVERY,
            lease=settings.OUTBOX_LEASE,
        )
        self._destinations = [name for name in bound_destinations() if self._produces_for(name)]

    def _produces_for(self, destination: str) -> bool:
        from outbox.append import required_destinations

        return any(destination in required_destinations(event_type) for event_type in self.owner.events)

    def __enter__(self) -> "Dispatcher":
        self._heartbeat.__enter__()
        metrics.worker_started(version=settings.RELEASE, region=settings.REGION)
        return self

    def __exit__(self, *exception: object) -> None:
        self._heartbeat.__exit__(*exception)

    def drain(self, *, until: float | None = None) -> Drained:
        """Work until nothing is due, draining begins, or the monotonic time `until` has passed."""
        total = Drained()
        try:
            self._drain(total, until)
        except Exception:
            metrics.round_finished(producer=self.owner.name, ok=False)
            raise
        metrics.round_finished(producer=self.owner.name, ok=True)
        return total

    def _drain(self, total: Drained, until: float | None) -> None:
        idle: set[str] = set()
        while len(idle) < len(self._destinations):
            for destination in self._destinations:
                if drain.begun() or (until is not None and time.monotonic() >= until):
                    return
                if self.one_batch(destination, total):
                    idle.discard(destination)
                else:
                    idle.add(destination)

    def one_batch(self, destination: str, total: Drained) -> bool:
        """Claim, deliver and settle one batch. False if a look from the beginning found nothing."""
        with self._connection() as connection:
            with self._timed(destination, "claim"):
                claim = self._claimer.claim(connection, destination)
            if not claim.rows:
                return not claim.full
            self._heartbeat.hold(claim.rows)
            total.claimed += len(claim.rows)
            total.recovered += claim.recovered
            metrics.claimed(self.owner.name, destination, len(claim.rows))
            metrics.recovered(self.owner.name, destination, claim.recovered)
            steps.reach("claimed")
            try:
                settlement = self._work(claim.rows, destination)
                steps.reach("delivered")
            finally:
                self._heartbeat.release(claim.rows)
            with self._timed(destination, "settle"):
                total.add(settle(connection, settlement, producer=self.owner.name, destination=destination))
            measure.judged(settlement)
            steps.reach("settled")
        return True

    def _work(self, rows: list[Claimed], destination: str) -> Settlement:
        if drain.begun():
            metrics.given_back(self.owner.name, destination, len(rows))
            return Settlement(
                retries=[Retry(row, RetryClass.TRANSIENT.value, "worker_draining", "", 0.0) for row in rows]
            )
        lost = self._heartbeat.lost()
        mine = [row for row in rows if row.attempt_id not in lost]
        with self._timed(destination, "deliver"):
            return deliver(mine, producer=self.owner.name, destination=destination, transport=self.transport)

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        wrapper = connections[self.owner.dispatch_alias]
        wrapper.ensure_connection()
        try:
            yield wrapper.connection
        except psycopg.OperationalError:
            wrapper.close()
            raise

    @contextmanager
    def _timed(self, destination: str, phase: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            metrics.batch_seconds(self.owner.name, destination, phase, time.perf_counter() - started)
