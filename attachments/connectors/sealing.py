"""Secrets as the database keeps them: encrypted with AES-256-GCM, and bound to the row that holds them.

`CONNECTOR_SEALING_KEYS` holds one key or several. The first one seals; each opens what it sealed. Whoever reads the
database without the keys learns no secret, and whoever writes it cannot move one to another connector.
"""

import hashlib
import hmac
import os
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

from attachments.connectors.errors import SealBroken
from attachments.connectors.signature import Secret

NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class Sealed:
    """An encrypted secret, and the name of the key that opens it."""

    data: bytes
    sealed_with: str


def seal(secret: Secret, *, connector_id: UUID, secret_id: UUID) -> Sealed:
    """Encrypt a secret for one row."""
    name, cipher = next(iter(_ciphers(settings.CONNECTOR_SEALING_KEYS).items()))
    nonce = os.urandom(NONCE_BYTES)
    return Sealed(nonce + cipher.encrypt(nonce, secret.data, _row(connector_id, secret_id)), name)


def open_sealed(sealed: Sealed, *, connector_id: UUID, secret_id: UUID) -> Secret:
    """The secret of that row. Raises `SealBroken`: the key is not set, or the row was tampered with."""
    cipher = _ciphers(settings.CONNECTOR_SEALING_KEYS).get(sealed.sealed_with)
    if cipher is None:
        raise SealBroken(f"{secret_id}: {SealBroken.__doc__}")
    nonce, data = sealed.data[:NONCE_BYTES], sealed.data[NONCE_BYTES:]
    try:
        return Secret(cipher.decrypt(nonce, data, _row(connector_id, secret_id)))
    except InvalidTag:
        raise SealBroken(f"{secret_id}: {SealBroken.__doc__}") from None


def name_of_key() -> str:
    """Names the key that seals now, without telling it."""
    return next(iter(_ciphers(settings.CONNECTOR_SEALING_KEYS)))


@lru_cache(maxsize=4)
def _ciphers(keys: tuple[str, ...]) -> dict[str, AESGCM]:
    return {
        hmac.digest(key.encode(), b"the name of this key", "sha256").hex(): AESGCM(
            hashlib.sha256(b"connector secrets\0" + key.encode()).digest()
        )
        for key in keys
    }


def _row(connector_id: UUID, secret_id: UUID) -> bytes:
    return connector_id.bytes + secret_id.bytes
