"""One window by its key, and its row, which whoever changes anything of the window holds."""

from datetime import datetime
from typing import Any, NamedTuple

from django.db.backends.utils import CursorWrapper

from metering.consumption import statements

ALIAS = "telemetry"


class Window(NamedTuple):
    """The key of one window; `window_start` is an instant, in whatever zone."""

    kind: str
    cluster_id: str
    window_start: datetime

    def parameters(self) -> dict[str, Any]:
        """As the statements name them."""
        return {"kind": self.kind, "cluster": self.cluster_id, "start": self.window_start}


def hold(window: Window, cursor: CursorWrapper) -> datetime | None:
    """Lock the window until the caller's transaction ends; its end, or None if another holds it or there is none."""
    cursor.execute(statements.HOLD, window.parameters())
    row = cursor.fetchone()
    return row[0] if row else None
