"""A secret store that fails, or dies, or lets something happen, at a step of a rotation that a test chooses."""

from collections.abc import Callable
from enum import Enum, auto

from metering.clusters.secret_store import SecretStore, SecretStoreFailed, Slot


class Step(Enum):
    """What a rotation wants of its store, in this order."""

    READ = auto()
    SECONDARY = auto()
    PRIMARY = auto()
    AFTER_PRIMARY = auto()
    """It was written, and its answer was lost."""


class Stepped:
    """A far side whose outages are the input of the test; what it keeps is kept by a real store."""

    def __init__(
        self,
        store: SecretStore,
        *,
        fails_at: Step | None = None,
        dies_at: Step | None = None,
        between: tuple[Step, Callable[[], None]] | None = None,
    ) -> None:
        self._store, self._fails_at, self._dies_at, self._between = store, fails_at, dies_at, between

    def read(self, *, cluster_id: int, slot: Slot) -> str | None:
        self._reach(Step.READ)
        return self._store.read(cluster_id=cluster_id, slot=slot)

    def write(self, *, cluster_id: int, slot: Slot, secret: str) -> None:
        primary = slot is Slot.PRIMARY
        self._reach(Step.PRIMARY if primary else Step.SECONDARY)
        self._store.write(cluster_id=cluster_id, slot=slot, secret=secret)
        if primary:
            self._reach(Step.AFTER_PRIMARY)

    def _reach(self, step: Step) -> None:
        if step is self._fails_at:
            raise SecretStoreFailed("It is away.")
        if step is self._dies_at:
            raise KeyboardInterrupt
        if self._between and step is self._between[0]:
            self._between[1]()
