"""The interface of a secret store. `OTLP_SECRET_STORE` names the class; another one needs these two methods only."""

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from django.conf import settings
from django.utils.module_loading import import_string


class Slot(StrEnum):
    """The two secrets of a cluster; a store keeps them under `/otlp/<cluster id>/`."""

    PRIMARY = "PRIMARY_TOKEN"
    """What collectors take up."""
    SECONDARY = "SECONDARY_TOKEN"
    """The one before, for people: it is accepted until its grace is over."""


class SecretStoreFailed(Exception):
    """The secret store did not do it, or did not say so. Transient: see to the store, then rotate again."""


class SecretStore(Protocol):
    """Made anew for each rotation, with no argument: it reads its settings, and may raise `ImproperlyConfigured`.

    A rotation needs three calls. Bound them so that they end within 40 seconds together.
    """

    def read(self, *, cluster_id: int, slot: Slot) -> str | None:
        """What stands there now, past every cache; None if nothing does. Raises `SecretStoreFailed`."""

    def write(self, *, cluster_id: int, slot: Slot, secret: str) -> None:
        """Put `secret` there, durably before it returns. After `SecretStoreFailed` either value may stand there."""


def secret_store() -> SecretStore:
    """The store that this deployment uses."""
    kind: Callable[[], SecretStore] = import_string(settings.OTLP_SECRET_STORE)
    return kind()
