"""When a delivery is tried again, and whether trying may end: one table in the settings, `OUTBOX_RETRY` (O30)."""

import random
import unicodedata
from dataclasses import dataclass

import psycopg
from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError

from outbox.contracts.delivery import RetryClass

MAX_DETAIL = 1000
"""Characters of sanitised detail kept with a finish."""
MIN_DELAY_SECONDS = 0.05
"""Full jitter may draw nearly nothing; a delivery still does not come back in the same breath."""
NOT_THE_EVENT = frozenset({"transport_unreachable", "worker_draining", "ack_rejected", "consumer_unbound"})
"""Codes that say nothing about the event: such attempts never count towards quarantine."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Delays in seconds. `quarantine_after` counts attempts of this class that are about the event; None: never."""

    base: float
    factor: float
    cap: float
    jitter: bool
    quarantine_after: int | None

    def delay(self, attempt: int) -> float:
        """Seconds until the next try after the `attempt`-th one (from 1)."""
        longest = min(self.cap, self.base * self.factor ** min(attempt - 1, 60))
        return max(MIN_DELAY_SECONDS, random.uniform(0, longest) if self.jitter else longest)  # noqa: S311  # spreads load, keeps no secret


def policy(retry_class: str) -> Policy:
    """The policy of one class; a system check proves at start that each class has one."""
    row = settings.OUTBOX_RETRY[retry_class]
    return Policy(
        base=float(row["base"] or 0),
        factor=float(row["factor"] or 1),
        cap=float(row["cap"] or 0),
        jitter=bool(row.get("jitter", True)),
        quarantine_after=int(row["quarantine_after"]) if row["quarantine_after"] else None,
    )


def classify(error: BaseException) -> tuple[RetryClass, str, str]:
    """(class, code, detail) of what a consumer or the transport raised. Unknown means transient, named by its class."""
    if isinstance(error, OperationalError | InterfaceError | ConnectionError | TimeoutError | psycopg.OperationalError):
        return RetryClass.TRANSIENT, "transport_unreachable", sanitise(error)
    if isinstance(error, DatabaseError):
        return RetryClass.TRANSIENT, "consumer_database_error", sanitise(error)
    return RetryClass.TRANSIENT, f"raised_{type(error).__name__.lower()}"[:80], sanitise(error)


def sanitise(value: object) -> str:
    """Text that PostgreSQL stores and a page shows: no U+0000, no surrogate, no control character, bounded."""
    text = str(value)[: MAX_DETAIL * 4]
    kept = (" " if unicodedata.category(char) in {"Cc", "Cs", "Co", "Cn"} else char for char in text)
    return " ".join("".join(kept).split())[:MAX_DETAIL]
