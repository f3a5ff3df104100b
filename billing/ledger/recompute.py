"""Compute balances and holds from the entries alone, and compare (decisions, "Billing")."""

from dataclasses import dataclass

from django.db import connections, transaction

from config.owners import owner_named

BALANCES = """
SELECT a.ledger_account_id, a.balance_picos, coalesce(e.picos, 0)
  FROM ledger_accounts a
  LEFT JOIN (SELECT ledger_account_id, sum(amount_picos) AS picos FROM ledger_entries GROUP BY 1) e
    USING (ledger_account_id)
 WHERE a.balance_picos IS DISTINCT FROM coalesce(e.picos, 0)
 ORDER BY 1
"""
HOLDS = """
SELECT h.hold_id, CASE h.state WHEN 'held' THEN h.amount_picos ELSE 0 END, coalesce(e.picos, 0)
  FROM ledger_holds h
  LEFT JOIN (SELECT hold_id, sum(amount_picos) AS picos FROM ledger_entries WHERE hold_id IS NOT NULL GROUP BY 1) e
    USING (hold_id)
 WHERE CASE h.state WHEN 'held' THEN h.amount_picos ELSE 0 END IS DISTINCT FROM coalesce(e.picos, 0)
 ORDER BY 1
"""
POSTINGS = """
SELECT p.reference, 0, sum(e.amount_picos)
  FROM ledger_postings p LEFT JOIN ledger_entries e ON e.posting_id = p.reference
 GROUP BY p.reference, p.entry_count, e.currency
HAVING sum(e.amount_picos) IS DISTINCT FROM 0 OR count(e.line) <> p.entry_count
 ORDER BY 1
"""
CHECKS = {
    "balance": BALANCES,
    "hold": HOLDS,
    "posting": POSTINGS,
}
COUNTS = """
SELECT (SELECT count(*) FROM ledger_accounts), (SELECT count(*) FROM ledger_holds),
       (SELECT count(*) FROM ledger_postings)
"""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is stored otherwise than the entries say. Amounts in pico-units."""

    check: str
    subject: str
    stored: int | None
    computed: int | None


@dataclass(frozen=True, slots=True)
class Recomputation:
    """How many of each were examined, and what differs."""

    examined: dict[str, int]
    differences: tuple[Difference, ...]


def recompute() -> Recomputation:
    """Read everything in one repeatable-read snapshot under the read role."""
    alias = owner_named("billing").read_alias
    with transaction.atomic(using=alias, durable=True), connections[alias].cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        found: list[Difference] = []
        for check, sql in CHECKS.items():
            cursor.execute(sql)
            found += [Difference(check, subject, _int(a), _int(b)) for subject, a, b in cursor.fetchall()]
        cursor.execute(COUNTS)
        examined = dict(zip(CHECKS, cursor.fetchone() or (), strict=True))
    return Recomputation(examined, tuple(found))


def _int(value: object) -> int | None:
    return None if value is None else int(str(value))
