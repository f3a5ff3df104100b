"""Claim due deliveries of one destination, and recover expired leases, in one short transaction (O19).

The statement walks one partial index per state. It starts from a remembered low mark of `available_at`, so that dead
index entries behind the mark are not walked again and again; the mark is a hint of this process only. A periodic full
scan, and one at once after a short claim, finds what became due behind the mark (retries, events that committed late).
Nothing depends on the mark for correctness: a wrong one delays until the next full scan, it loses nothing.

All times are the database's. An expired lease is finished as `lease_expired_unknown` and claimed again in the same
statement; how that can be wrong: the old worker may still be working, and its late settle then changes no row.

One statement is enough, although others change rows between its snapshot and its locks: a lease or a delay that
somebody wrote meanwhile ends after this statement's `now()`, so the changed row does not match again. Only a claim that
was held up for longer than its own lease breaks that; the guards then refuse this statement as a whole, and it is
repeated.
"""

import time
from dataclasses import dataclass, field
from typing import Any

import psycopg

from outbox.members import Members
from outbox.rows import Claimed

FULL_SCAN_COST_FACTOR = 20
"""A full scan runs at most once in 20 times its own duration, so that it stays a twentieth of the work."""
BEGINNING = "-infinity"

CLAIM = """
WITH expired AS MATERIALIZED (
    SELECT event_id, current_attempt_id AS lost_attempt FROM outbox_deliveries
     WHERE %(rescue)s::boolean AND status = 'leased' AND destination = %(destination)s AND lease_expires_at <= now()
     ORDER BY lease_expires_at LIMIT {batch} FOR UPDATE SKIP LOCKED
), lost AS (
    INSERT INTO outbox_delivery_attempt_finishes (attempt_id, outcome, retry_disposition)
    SELECT lost_attempt, 'lease_expired_unknown', 'retry' FROM expired
), due AS MATERIALIZED (
    SELECT event_id FROM outbox_deliveries
     WHERE status = 'pending' AND destination = %(destination)s
       AND available_at >= %(mark)s::timestamptz AND available_at <= now()
     ORDER BY available_at, created_at, event_id LIMIT {batch} FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE outbox_deliveries d
       SET status = 'leased', lease_owner = %(worker)s, lease_token = d.lease_token + 1,
           lease_expires_at = now() + {lease} * interval '1 second', current_attempt_id = gen_random_uuid(),
           attempt_count = d.attempt_count + 1, last_attempt_at = now()
      FROM (SELECT event_id, false AS recovered FROM due UNION ALL SELECT event_id, true FROM expired) p
     WHERE d.event_id = p.event_id AND d.destination = %(destination)s
    RETURNING d.event_id, d.current_attempt_id, d.lease_token, d.attempt_count, d.available_at, p.recovered
), started AS (
    INSERT INTO outbox_delivery_attempt_starts
           (attempt_id, event_id, destination, attempt_no, lease_token, lease_owner)
    SELECT current_attempt_id, event_id, %(destination)s, attempt_count, lease_token, %(worker)s FROM taken
)
SELECT t.event_id::text, t.current_attempt_id::text, t.lease_token, t.attempt_count, t.recovered,
       t.available_at::text, e.aggregate_id, e.aggregate_revision, e.event_envelope,
       e.event_envelope_digest_algorithm_version, e.event_envelope_sha256,
       e.delivery_set_version, e.event_type, e.schema_version
  FROM taken t JOIN outbox_events e USING (event_id)
 ORDER BY t.available_at, t.event_id
"""


@dataclass(slots=True)
class Mark:
    """Where the next claim of one destination starts, and when the next full scan is due (monotonic seconds)."""

    low: str = BEGINNING
    full_scan_at: float = 0.0
    rescue_at: float = 0.0


@dataclass(slots=True)
class Claim:
    """What one claim brought."""

    rows: list[Claimed]
    recovered: int
    full: bool
    """Whether it looked from the beginning: only then does an empty claim mean that nothing is due."""


@dataclass(slots=True)
class Claimer:
    """Claims for one worker at one producer. Not shared between threads."""

    worker: str
    members: Members
    batch: int
    lease: float
    full_scan_every: float
    marks: dict[str, Mark] = field(default_factory=dict)

    def claim(self, connection: psycopg.Connection[tuple[Any, ...]], destination: str) -> Claim:
        """Up to twice `batch` deliveries (due and recovered), leased to this worker, oldest first. Commits."""
        mark = self.marks.setdefault(destination, Mark())
        started = time.monotonic()
        full = started >= mark.full_scan_at
        rescue = started >= mark.rescue_at
        with connection.cursor() as cursor:
            cursor.execute(
                CLAIM.format(batch=self.batch, lease=self.lease),
                {
                    "destination": destination,
                    "worker": self.worker,
                    "mark": BEGINNING if full else mark.low,
                    "rescue": rescue,
                },
            )
            found = cursor.fetchall()
        self._remember(mark, found, full=full, rescue=rescue, started=started)
        return Claim([self._row(row, destination) for row in found], sum(bool(row[4]) for row in found), full)

    def _remember(self, mark: Mark, found: list[tuple[Any, ...]], *, full: bool, rescue: bool, started: float) -> None:
        now = time.monotonic()
        due = [str(row[5]) for row in found if not row[4]]
        if rescue:
            mark.rescue_at = now + self.full_scan_every
        if full:
            mark.full_scan_at = now + max(self.full_scan_every, FULL_SCAN_COST_FACTOR * (now - started))
        if due:
            mark.low = due[-1]
        if len(due) < self.batch and not full:
            mark.full_scan_at = now

    def _row(self, row: tuple[Any, ...], destination: str) -> Claimed:
        (event_id, attempt_id, token, count, _, _, aggregate_id, revision, text, algorithm, sha256, *key) = row
        return Claimed(
            event_id=event_id,
            attempt_id=attempt_id,
            lease_token=token,
            attempt_count=count,
            aggregate_id=aggregate_id,
            aggregate_revision=revision,
            envelope=text.encode(),
            digest_algorithm_version=algorithm,
            envelope_sha256=sha256,
            member=self.members.find(key[0], key[1], key[2], destination),
        )
