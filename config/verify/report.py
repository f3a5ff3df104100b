"""Runs every check and says what came of it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from config.verify import (
    admission,
    attempts,
    charges,
    claims,
    connectors,
    deliveries,
    ledger,
    projection,
    quota,
    receipts,
    stored_files,
    telemetry,
    tokens,
)
from config.verify.check import Check, Tally
from config.verify.totals import totals

CHECKS: tuple[Check, ...] = (
    *deliveries.CHECKS,
    *attempts.CHECKS,
    *receipts.CHECKS,
    *projection.CHECKS,
    *ledger.CHECKS,
    *admission.CHECKS,
    *tokens.CHECKS,
    *telemetry.CHECKS,
    *charges.CHECKS,
    *quota.CHECKS,
    *connectors.CHECKS,
    *claims.CHECKS,
    *stored_files.CHECKS,
)
"""Every invariant that can be proven from the databases, in the order of the report."""


@dataclass(frozen=True, slots=True)
class Report:
    """What all checks came to."""

    found: tuple[tuple[Check, Tally], ...]
    totals: dict[str, int]

    @property
    def ok(self) -> bool:
        return not any(tally.violations for _, tally in self.found)

    def wire(self) -> dict[str, Any]:
        """The report for scripts."""
        checks = [{"id": check.id, **asdict(tally)} for check, tally in self.found]
        return {"ok": self.ok, "checks": checks, "totals": self.totals}


def verify(*, after_each: Callable[[Check, Tally], None] | None = None) -> Report:
    """Run every check, one after the other. Raises a database error if one of the databases does not answer."""
    found = []
    for check in CHECKS:
        tally = check.run()
        found.append((check, tally))
        if after_each is not None:
            after_each(check, tally)
    return Report(tuple(found), totals())
