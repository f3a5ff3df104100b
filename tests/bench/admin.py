"""Part `admin`: queries and milliseconds of every page of the admin over a million events and deliveries."""

import subprocess
import sys
from http import HTTPStatus
from typing import Any

from tests.bench import children, ground
from tests.bench.multiply import EVERYTHING, Multiplier
from tests.bench.size import Size
from tests.bench.table import Line

PREFIX = "bench_admin_"
SHOWN = 8
QUARANTINED = {
    "status": "'quarantined'",
    "last_error_code": "'schema_rejected'",
    "delivered_at": "NULL",
    "ack_consumer_name": "NULL",
    "ack_receipt_type": "NULL",
    "ack_receipt_ref": "NULL",
    "ack_receipt_schema_version": "NULL",
    "ack_receipt_digest_algorithm_version": "NULL",
    "ack_receipt_digest": "NULL",
    "ack_event_envelope_digest_algorithm_version": "NULL",
    "ack_event_envelope_sha256": "NULL",
}
PENDING = QUARANTINED | {"status": "'pending'", "last_error_code": "NULL"}
ENTRIES = """
INSERT INTO outbox_quarantine (event_id, destination, attempt_id, event_type, schema_version, reason,
                               event_envelope_digest_algorithm_version, event_envelope_sha256)
SELECT event_id, destination, d.current_attempt_id, d.event_type, d.schema_version, 'schema_rejected',
       'jcs-sha256-v1', e.event_envelope_sha256
  FROM outbox_deliveries d JOIN outbox_events e USING (event_id) WHERE d.status = 'quarantined'
"""


def measure(size: Size) -> list[Line]:
    """The slowest kinds of page, each by its slowest page, and the most queries of any."""
    _load(size.of(1_000_000, least=1_000))
    try:
        pages = children.run("browse", prefix=PREFIX).answers[0]["pages"]
    finally:
        for name in _owners():
            ground.drop(f"{PREFIX}{name}")
    pages.sort(key=lambda page: -page["ms"])
    slowest, others = pages[:SHOWN], pages[SHOWN:]
    lines = [Line("admin", page["kind"], page["ms"], "ms", goal="< 300", note=_note(page)) for page in slowest]
    note = f"of {len(pages)} kinds of page"
    lines.append(Line("admin", "most queries of one page", max(page["queries"] for page in pages), "", "< 10", note))
    if others:
        lines.append(Line("admin", f"slowest of the other {len(others)}", others[0]["ms"], "ms", goal="< 300"))
    return lines


def _note(page: dict[str, Any]) -> str:
    odd = [status for status in page["statuses"] if status != HTTPStatus.OK]
    return f"{page['queries']} queries{f', answered {odd}' if odd else ''}"


def _owners() -> list[str]:
    from config.owners import OWNERS

    return [owner.name for owner in OWNERS]


def _load(events: int) -> None:
    others = [name for name in _owners() if name != "core"]
    environment = {**ground.environment(), "DATABASE_NAME_PREFIX": PREFIX}
    for name in others:
        ground.drop(f"{PREFIX}{name}")
    subprocess.run(
        [sys.executable, "manage.py", "migrate_owners", *others, "-v", "0"],
        cwd=children.ROOT, env=environment, check=True,
    )  # fmt: skip
    ground.copy(of=ground.EMPTY, to=PREFIX)
    children.run("preload", "--events", "2", prefix=PREFIX)
    children.run("dispatcher", prefix=PREFIX)
    with ground.administrator(f"{PREFIX}core") as connection:
        # Copies of a receipt carry the digest of their original, which this constraint would notice.
        connection.execute(
            "ALTER TABLE operations_projection_applied_receipts DROP CONSTRAINT operations_receipt_digest"
        )
        multiplier = Multiplier(connection)
        multiplier.add(events * 96 // 100, tables=EVERYTHING)
        backlog = [table for table in EVERYTHING if table.startswith("outbox")]
        multiplier.add(events * 2 // 100, tables=backlog, changes=PENDING)
        multiplier.add(events * 2 // 100, tables=backlog, changes=QUARANTINED)
        connection.execute(ENTRIES)
    ground.settled(f"{PREFIX}core")
