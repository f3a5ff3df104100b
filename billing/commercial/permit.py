"""What business code gets before it may begin."""

import uuid
from dataclasses import dataclass
from enum import StrEnum

from billing.commercial.markers.mark import MarkerKey
from billing.commercial.markers.models import MarkerKind


class PermitState(StrEnum):
    """What the commercial side has to do with the work."""

    UNMETERED = "unmetered"
    """No meter counts it: work goes on, and nothing is written about it."""
    RESERVED = "reserved"
    """Quota is held until the work's transaction ends."""
    SETTLED = "settled"
    """The same operation was committed and counted before: work goes on, and nothing is counted again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """Work may begin. `using` is the alias whose transaction decides; `quantity` is both asked for and used."""

    state: PermitState
    using: str
    quantity: int
    reservation_id: uuid.UUID | None = None
    generation: int = 0

    @property
    def holds_quota(self) -> bool:
        """Whether the work has to leave a marker."""
        return self.state is PermitState.RESERVED

    @property
    def marker(self) -> MarkerKey:
        """The key under which the work's transaction leaves its marker. Raises `LookupError` if it holds no quota."""
        if not self.holds_quota or self.reservation_id is None:
            raise LookupError(f"A permit that is {self.state} has no marker.")
        return MarkerKey(self.reservation_id, self.generation, MarkerKind.RESERVATION)
