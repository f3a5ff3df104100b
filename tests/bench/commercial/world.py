"""Tenants with subscriptions for the measurement, the rows it is compared with, and a long history."""

from datetime import timedelta

from tests.bench import ground
from tests.commercial.make import AT, subscribe

__all__ = ["AT", "DIMENSION", "TENANTS", "TOOL", "grow_history", "make", "tenant", "uploader"]

TOOL, DIMENSION = "bench", "bench.work"
TENANTS = 100
UPLOADER = "org:bench-uploader"
ROOMY = 2**52

BESIDE = (
    "CREATE TABLE bench_rows (row_id integer PRIMARY KEY, counted bigint NOT NULL) WITH (fillfactor = 50)",
    "INSERT INTO bench_rows SELECT n, 0 FROM generate_series(0, 99) n",
    "CREATE TABLE bench_plain (plain_id uuid PRIMARY KEY, counted bigint NOT NULL)",
    "GRANT SELECT, INSERT, UPDATE ON bench_rows, bench_plain TO billing_owner",
)

RESERVATIONS = """
INSERT INTO commercial_runtime_reservations (
    reservation_id, operation_sha256, business, period_id, meter_id, quantity, generation, state, as_of, reserved_at,
    ended_at, ended_by)
SELECT gen_random_uuid(), encode(sha256(convert_to('history ' || n, 'UTF8')), 'hex'), r.business, r.period_id,
       r.meter_id, r.quantity, 1, 'settled', r.as_of, r.reserved_at, r.ended_at, r.ended_by
  FROM generate_series(1, %s) n
 CROSS JOIN (SELECT * FROM commercial_runtime_reservations WHERE state = 'settled' LIMIT 1) r
"""
USAGE = """
INSERT INTO usage_meter_events (
    reservation_id, generation, operation_sha256, period_id, meter_id, entitlement_id, tool, dimension, quantity_basis,
    quantity, source, occurred_at)
SELECT r.reservation_id, r.generation, r.operation_sha256, r.period_id, r.meter_id, m.entitlement_id, m.tool,
       m.dimension, m.quantity_basis, r.quantity, r.ended_by, r.as_of
  FROM commercial_runtime_reservations r JOIN commercial_meters m ON m.meter_id = r.meter_id
 WHERE r.state = 'settled' AND NOT EXISTS (SELECT FROM usage_meter_events u WHERE u.reservation_id = r.reservation_id)
"""
COUNTERS = """
UPDATE commercial_entitlement_periods p SET taken_quantity = t.taken
  FROM (SELECT period_id, sum(quantity) AS taken FROM commercial_runtime_reservations WHERE state <> 'released'
         GROUP BY period_id) t WHERE t.period_id = p.period_id
"""


def tenant(number: int) -> str:
    """The id of one of the tenants."""
    return f"org:bench-{number}"


def make(billing: str) -> None:
    """Subscribe every tenant, and lay the plain rows beside them."""
    for number in range(TENANTS):
        subscribe(tenant=tenant(number), limit=ROOMY, tool=TOOL, dimension=DIMENSION)
    with ground.administrator(billing) as connection:
        for statement in BESIDE:
            connection.execute(statement)


def uploader() -> str:
    """The access token of a member of an organisation whose uploads are counted."""
    from django.contrib.auth.models import User

    from attachments.claims.members import Tenant, join
    from attachments.claims.models import MembershipRole
    from attachments.claims.tokens import mint

    subscribe(tenant=UPLOADER, limit=ROOMY, tool="storage", dimension="attachment.upload", basis="bytes")
    account = User.objects.using("default").create(username="bench-uploader")
    member = Tenant("organization", UPLOADER)
    join(user_id=account.pk, tenant=member, role=MembershipRole.MEMBER)
    return mint(user_id=account.pk, tenant=member, life=timedelta(days=1)).text


def grow_history(billing: str, *, events: int) -> None:
    """As if `events` operations had been counted before, on the entitlement that is hot."""
    with ground.administrator(billing) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(RESERVATIONS, (events,))
        connection.execute(USAGE)
        connection.execute(COUNTERS)
    ground.settled(billing)
