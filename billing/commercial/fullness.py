"""How full periods are: used, held and free, read together at one moment."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db import connections

FULL = """
SELECT p.period_id, p.hard_limit, p.taken_quantity, coalesce(h.held, 0)::bigint
  FROM commercial_entitlement_periods p
  LEFT JOIN (SELECT r.period_id, sum(r.quantity) AS held FROM commercial_runtime_reservations r
              WHERE r.state = 'reserved' AND r.period_id = ANY (%(periods)s) GROUP BY 1) h USING (period_id)
 WHERE p.period_id = ANY (%(periods)s)
"""


@dataclass(frozen=True, slots=True)
class Fullness:
    """Of one period, in units of its entitlement. Used, held and free add up to the limit."""

    hard_limit: int
    used: int
    held: int

    @property
    def free(self) -> int:
        """What may still be asked for."""
        return self.hard_limit - self.used - self.held


def fullness(period_ids: Collection[int], *, alias: str) -> dict[int, Fullness]:
    """By period, through an alias that may read."""
    with connections[alias].cursor() as cursor:
        cursor.execute(FULL, {"periods": list(period_ids)})
        return {
            period: Fullness(hard_limit=limit, used=taken - held, held=held)
            for period, limit, taken, held in cursor.fetchall()
        }
