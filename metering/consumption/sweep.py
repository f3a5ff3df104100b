"""One sweep: sum up what changed, release what became known, have billing post what is owed.

Any number of sweeps may run at once, be killed anywhere, or not run for a while: what one did not do, the next does.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from metering.consumption.aggregate import Outcome, aggregate_due
from metering.consumption.ask_billing import ask_billing
from metering.consumption.models import ChargeState
from metering.consumption.release_orphans import release_orphans
from outbox import drain


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep did."""

    windows: Mapping[Outcome, int]
    released: int
    charges: Mapping[ChargeState, int]

    @property
    def healthy(self) -> bool:
        """Whether nothing failed or conflicts."""
        return not self.windows.get(Outcome.FAILED) and not self.charges.get(ChargeState.CONFLICTING)


def sweep_consumption(*, at: datetime, patience: timedelta) -> Swept:
    """Work for about `patience`, on each kind of work at least once; `at` decides which windows are over.

    Raises `WindowLengthChanged`, and database errors of telemetry or of the managed keys.
    """
    deadline = time.monotonic() + patience.total_seconds()

    def go_on() -> bool:
        return time.monotonic() < deadline and not drain.begun()

    windows = aggregate_due(at=at, go_on=go_on)
    return Swept(windows, release_orphans(go_on=go_on), ask_billing(go_on=go_on))
