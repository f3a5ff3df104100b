"""The heartbeat: one thread and one connection per worker renew every lease that is still in work (O19).

It renews at a third of the lease. It locks rows in one order and skips those that somebody holds (a settle or a rescuer
is at work there), so it never waits inside the database. A row that now belongs to another attempt is lost: the worker
stops that row and nothing else; whatever it still does with it, the fence refuses.
"""

import threading
from collections.abc import Sequence
from typing import Any

import structlog
from django.db import Error, connections

from outbox import metrics
from outbox.rows import Claimed

log = structlog.get_logger("outbox.renew")

RENEW = """
WITH held AS MATERIALIZED (
    SELECT d.event_id, d.destination
      FROM unnest(%s::uuid[], %s::text[], %s::uuid[], %s::bigint[]) h (event_id, destination, attempt_id, token)
      JOIN outbox_deliveries d ON d.event_id = h.event_id AND d.destination = h.destination
     WHERE d.current_attempt_id = h.attempt_id AND d.lease_token = h.token AND coalesce(d.lease_owner, '') <> ''
     ORDER BY d.event_id, d.destination FOR UPDATE OF d SKIP LOCKED
)
UPDATE outbox_deliveries d
   SET lease_expires_at = greatest(d.lease_expires_at, clock_timestamp() + %s * interval '1 second')
  FROM held WHERE d.event_id = held.event_id AND d.destination = held.destination
RETURNING d.current_attempt_id::text
"""
STILL_MINE = """
SELECT h.attempt_id::text
  FROM unnest(%s::uuid[], %s::text[], %s::uuid[], %s::bigint[]) h (event_id, destination, attempt_id, token)
  JOIN outbox_deliveries d ON d.event_id = h.event_id AND d.destination = h.destination
 WHERE d.current_attempt_id = h.attempt_id AND d.lease_token = h.token AND coalesce(d.lease_owner, '') <> ''
"""


class Heartbeat:
    """Renews what `hold` names until `release`; `lost` answers which of them are no longer this worker's."""

    def __init__(self, *, using: str, producer: str, every: float, lease: float) -> None:
        self._using, self._producer, self._every, self._lease = using, producer, every, lease
        self._held: dict[str, Claimed] = {}
        self._lost: set[str] = set()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"renew-{producer}", daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join(timeout=self._every + 10)

    def hold(self, rows: Sequence[Claimed]) -> None:
        """Renew these from now on."""
        with self._lock:
            self._held |= {row.attempt_id: row for row in rows}

    def release(self, rows: Sequence[Claimed]) -> None:
        """Stop renewing these: they are about to settle."""
        with self._lock:
            for row in rows:
                self._held.pop(row.attempt_id, None)
                self._lost.discard(row.attempt_id)

    def lost(self) -> frozenset[str]:
        """Attempts that belong to somebody else by now."""
        with self._lock:
            return frozenset(self._lost)

    def _beat(self) -> None:
        try:
            while not self._stop.wait(self._every):
                try:
                    self.renew_once()
                except Error as error:
                    # The next beat tries again; two may fail before a lease runs out.
                    log.warning("renew_failed", producer=self._producer, error_class=type(error).__name__)
                    connections[self._using].close()
        finally:
            connections[self._using].close()

    def renew_once(self) -> int:
        """One renewal of everything held; how many leases were extended."""
        with self._lock:
            rows = list(self._held.values())
        if not rows:
            return 0
        fence: list[Any] = [
            [row.event_id for row in rows],
            [row.member.destination for row in rows],
            [row.attempt_id for row in rows],
            [row.lease_token for row in rows],
        ]
        with connections[self._using].cursor() as cursor:
            cursor.execute(RENEW, [*fence, self._lease])
            renewed = {row[0] for row in cursor.fetchall()}
            mine = renewed
            if len(renewed) < len(rows):
                cursor.execute(STILL_MINE, fence)
                mine = {row[0] for row in cursor.fetchall()}
        with self._lock:
            gone = [row for row in rows if row.attempt_id not in mine and row.attempt_id in self._held]
            for row in gone:
                self._lost.add(row.attempt_id)
                del self._held[row.attempt_id]
        metrics.renewed(self._producer, len(renewed))
        if gone:
            metrics.lost_leases(self._producer, len(gone))
            log.warning("leases_lost", producer=self._producer, count=len(gone))
        return len(renewed)
