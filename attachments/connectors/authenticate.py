"""Which connector delivers this? The signature alone says so (C4). One indexed read at every request, and no cache.

A revocation is therefore effective in every process with the first request after its commit. The read must see that
commit at once: point `attachments.read` at a primary server, never at a replica.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

import structlog
from django.db import connections

from attachments.connectors.errors import SealBroken
from attachments.connectors.sealing import Sealed, open_sealed
from attachments.connectors.signature import Secret, Signed, read_signed
from config.owners import owner_named
from outbox.raw import raw_cursor

ALIAS = owner_named("attachments").read_alias
FIND = """
SELECT c.connector_id, c.tenant_kind, c.tenant_id, c.provider_code, c.digest, s.secret_id, s.sealed, s.sealed_with
  FROM financial_connectors c
  LEFT JOIN financial_connector_secrets s ON s.connector_id = c.connector_id
   AND (s.state = 'current' OR (s.state = 'superseded' AND s.expires_at > now()))
 WHERE c.connector_id = %s
 ORDER BY s.secret_id DESC
"""
NOBODYS = Secret.fresh()
"""What a request without a connector is compared with, so that it takes as long as one with a wrong signature."""

log = structlog.get_logger("attachments.connectors")


class Reason(StrEnum):
    """Why a request is not let in: the closed values of the metric's label. The sender learns none of them."""

    UNKNOWN_CONNECTOR = "unknown_connector"
    """No connector has this id."""
    MISSING_HEADER = "missing_header"
    """Not all of webhook-id, webhook-timestamp and webhook-signature are there."""
    MALFORMED_HEADER = "malformed_header"
    """One of them does not have its form."""
    OUTSIDE_WINDOW = "outside_window"
    """The attempt was made too long ago, or will be made."""
    NO_SECRET = "no_secret"  # noqa: S105  # the name of a reason
    """Every secret of the connector is revoked or expired."""
    WRONG_SIGNATURE = "wrong_signature"
    """No signature is that of an accepted secret."""


class AuthenticationFailed(Exception):
    """The request opens nothing. Permanent: the provider has to sign with a secret that is accepted, and now."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Delivery:
    """One authenticated attempt: whose event it is by configuration, and what was signed with which secret."""

    connector_id: UUID
    tenant_kind: str
    tenant_id: str
    provider_code: str
    configuration_digest: str
    secret_id: UUID
    signed: Signed = field(repr=False)


class _Row(NamedTuple):
    connector_id: UUID
    tenant_kind: str
    tenant_id: str
    provider_code: str
    digest: str
    secret_id: UUID | None
    sealed: bytes | None
    sealed_with: str | None


def authenticate(*, connector_id: str, headers: Mapping[str, str], body: bytes, now: datetime) -> Delivery:
    """The delivery behind a request, as it came; `headers` finds names whatever their case.

    Raises `AuthenticationFailed`, which holds no part of the request, `SealBroken` if no secret could be opened that
    might have signed it, or a database error.
    """
    signed = _read(headers, body, now)
    rows = _find(connector_id)
    secrets = [row for row in rows if row.secret_id is not None]
    if not secrets:
        signed.is_signed_with(NOBODYS)
        raise AuthenticationFailed(Reason.NO_SECRET if rows else Reason.UNKNOWN_CONNECTOR)
    good, broken = None, None
    for row in secrets:
        try:
            if signed.is_signed_with(_open(row)) and good is None:
                good = row
        except SealBroken as error:
            log.error("connector_secret_not_opened", connector_id=connector_id, sealed_as=str(row.secret_id))
            broken = error
    if good is None or good.secret_id is None:
        raise broken or AuthenticationFailed(Reason.WRONG_SIGNATURE)
    return Delivery(
        good.connector_id,
        good.tenant_kind,
        good.tenant_id,
        good.provider_code,
        good.digest,
        good.secret_id,
        signed,
    )


def _read(headers: Mapping[str, str], body: bytes, now: datetime) -> Signed:
    webhook_id, timestamp, signature = (headers.get(f"webhook-{name}") for name in ("id", "timestamp", "signature"))
    if not webhook_id or not timestamp or not signature:
        raise AuthenticationFailed(Reason.MISSING_HEADER)
    signed = read_signed(webhook_id=webhook_id, timestamp=timestamp, signature=signature, body=body)
    if signed is None:
        raise AuthenticationFailed(Reason.MALFORMED_HEADER)
    if not signed.is_near(now):
        raise AuthenticationFailed(Reason.OUTSIDE_WINDOW)
    return signed


def _find(connector_id: str) -> list[_Row]:
    """The connector with each of its accepted secrets. The pooled connection is given back at once."""
    try:
        wanted = UUID(connector_id)
    except ValueError:
        return []
    if str(wanted) != connector_id:
        return []
    try:
        with raw_cursor(ALIAS) as cursor:
            return [_Row(*row) for row in cursor.execute(FIND, [wanted]).fetchall()]
    finally:
        connections[ALIAS].close()


def _open(row: _Row) -> Secret:
    if row.secret_id is None or row.sealed is None or row.sealed_with is None:
        raise LookupError("A row without a secret was asked to open one.")
    return open_sealed(
        Sealed(bytes(row.sealed), row.sealed_with), connector_id=row.connector_id, secret_id=row.secret_id
    )
