"""Where plaintext tokens are handed over to collectors: one interface, a file store, an Infisical adapter."""

from metering.clusters.secret_store.file_store import FileStore
from metering.clusters.secret_store.infisical_store import InfisicalStore
from metering.clusters.secret_store.store import SecretStore, SecretStoreFailed, Slot, secret_store

__all__ = ["FileStore", "InfisicalStore", "SecretStore", "SecretStoreFailed", "Slot", "secret_store"]
