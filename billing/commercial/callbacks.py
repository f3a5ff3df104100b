"""What follows the end of one scope of a business transaction: completions in order, compensations in reverse (C3)."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from billing.commercial import metrics
from billing.commercial.errors import CommercialError

Callback = Callable[[], object]

log = structlog.get_logger("billing.commercial")


@dataclass(frozen=True, slots=True)
class Pair:
    """What runs after a commit, and what after a rollback; `at_end`: not before the outermost transaction ended."""

    complete: Callback | None
    compensate: Callback | None
    at_end: bool = False


class TransactionCallbacks:
    """The pairs of one scope, in the order of their registration.

    A callback that raises is logged and counted, undoes nothing, and keeps no other one from running; what it left is
    recovered from the marker.
    """

    def __init__(self) -> None:
        self.pairs: list[Pair] = []
        self._left: list[Pair] = []

    def adopt(self, inner: "TransactionCallbacks") -> None:
        """The savepoint of `inner` was released: its pairs share the fate of this scope."""
        self.pairs += inner.pairs
        self._left += inner._left

    def undo(self, inner: "TransactionCallbacks") -> None:
        """The savepoint of `inner` was rolled back: compensate now what need not wait for the outermost transaction."""
        self._left += inner._left
        for pair in reversed(inner.pairs):
            if pair.at_end:
                self._left.append(pair)
            else:
                _run(pair.compensate, "compensation")

    def after_commit(self) -> None:
        """The outermost transaction committed."""
        for pair in self.pairs:
            _run(pair.complete, "completion")
        for pair in reversed(self._left):
            _run(pair.compensate, "compensation")

    def after_rollback(self) -> None:
        """The outermost transaction was rolled back."""
        for pair in (*reversed(self.pairs), *reversed(self._left)):
            _run(pair.compensate, "compensation")


def _run(callback: Callback | None, phase: str) -> None:
    if callback is None:
        return
    try:
        callback()
    except Exception as error:
        metrics.callback_failed(phase)
        expected = isinstance(error, CommercialError)
        log.error("quota_callback_failed", phase=phase, error_class=type(error).__name__, exc_info=not expected)
