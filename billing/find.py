"""Find billing's records by any exact id they carry, in one statement of index look-ups."""

import uuid

from django.db import connections

from config.readonly_admin import SECTIONS, Link, Table

FIND = """
SELECT 'accounts', 'billing account', billing_account_id FROM billing_accounts WHERE billing_account_id = %(id)s
UNION ALL
SELECT 'reservations', 'reservation', billing_reservation_id FROM billing_reservations
 WHERE billing_reservation_id = %(id)s
UNION ALL
SELECT 'reservations', 'reservation of this operation', billing_reservation_id FROM billing_reservations
 WHERE operation_id = %(id)s
UNION ALL
SELECT 'reservations', 'reservation of this run', billing_reservation_id FROM billing_reservations
 WHERE run_id = %(id)s
UNION ALL
SELECT 'postings', 'posting', reference FROM ledger_postings WHERE reference = %(id)s
UNION ALL
SELECT 'telemetry-charges', 'charge of telemetry', charge_id FROM telemetry_charges WHERE charge_id = %(id)s
UNION ALL
SELECT 'price-books', 'price book', price_book_ref FROM price_books WHERE price_book_ref = %(id)s
UNION ALL
SELECT 'fences', 'finalization fence', billing_finalization_fence_id FROM billing_finalization_fences
 WHERE billing_finalization_fence_id = %(id)s
UNION ALL
SELECT 'works', 'finalization work', billing_finalization_work_ref FROM billing_finalization_works
 WHERE billing_finalization_work_ref = %(id)s
UNION ALL
SELECT 'plans', 'plan', plan_ref FROM commercial_plans WHERE plan_ref = %(id)s
UNION ALL
SELECT 'subscriptions', 'subscription', subscription_id FROM commercial_subscriptions WHERE subscription_id = %(id)s
UNION ALL
SELECT 'quota-reservations', 'quota reservation', reservation_id::text FROM commercial_runtime_reservations
 WHERE reservation_id = %(uuid)s::uuid
"""


def find_money(alias: str, text: str) -> list[Table]:
    """What carries the id."""
    with connections[alias].cursor() as cursor:
        cursor.execute(FIND, {"id": text, "uuid": _uuid(text)})
        found = cursor.fetchall()
    if not found:
        return []
    cells = tuple((Link(key, SECTIONS["billing"].row_url(slug, key)), what) for slug, what, key in found)
    return [Table("Money", ("Record", "What it is"), cells)]


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
