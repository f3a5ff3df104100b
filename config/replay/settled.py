"""What telemetry came to: what is stored, what was dropped, what consumption summed up and billing charged."""

from dataclasses import dataclass
from typing import Any

from django.db import connections

from config.owners import owner_named

UNFINISHED = """
SELECT (SELECT count(*) FROM consumption_windows_dirty WHERE marked_generation > cleared_generation),
       (SELECT count(*) FROM consumption_charges WHERE state = 'due')
"""
TALLIES = """
SELECT coalesce(sum(accepted), 0)::bigint, coalesce(sum(stored), 0)::bigint, coalesce(sum(duplicates), 0)::bigint,
       coalesce(sum(conflicts), 0)::bigint FROM telemetry_tallies
"""
DROPS = "SELECT reason, sum(dropped)::bigint FROM telemetry_drops GROUP BY reason ORDER BY reason"
CONSUMED = """
SELECT (SELECT count(*) FROM consumption_windows WHERE revision > 0), count(*), count(DISTINCT organization_id),
       coalesce(sum(input_tokens + cached_input_tokens), 0)::text, coalesce(sum(output_tokens), 0)::text,
       count(*) FILTER (WHERE state = 'posted'),
       coalesce(sum(amount_picos) FILTER (WHERE state = 'posted'), 0)::text
  FROM consumption_charges
"""
ORPHANS = "SELECT count(*) FROM consumption_lines WHERE orphan_reason IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What a sweep has yet to do."""

    windows: int
    charges: int

    @property
    def is_nothing(self) -> bool:
        """Whether consumption is up to date and billing was asked about all of it."""
        return not self.windows and not self.charges


def unfinished() -> Unfinished:
    """Windows marked dirty, and charges that billing has not answered."""
    (row,) = _rows(UNFINISHED)
    return Unfinished(*row)


def totals() -> dict[str, Any]:
    """All telemetry of this store, for the summary of the demo."""
    ((accepted, stored, duplicates, conflicts),) = _rows(TALLIES)
    ((windows, charges, organizations, inputs, outputs, posted, picos),) = _rows(CONSUMED)
    ((orphans,),) = _rows(ORPHANS)
    return {
        "accepted": accepted,
        "stored": stored,
        "duplicates": duplicates,
        "conflicts": conflicts,
        "dropped": {reason: int(count) for reason, count in _rows(DROPS)},
        "consumption": {
            "windows": windows,
            "charges": charges,
            "organizations": organizations,
            "inputTokens": inputs,
            "outputTokens": outputs,
            "posted": posted,
            "chargedPicos": picos,
            "orphanLines": orphans,
        },
    }


def _rows(statement: str) -> list[tuple[Any, ...]]:
    with connections[owner_named("telemetry").read_alias].cursor() as cursor:
        cursor.execute(statement)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
