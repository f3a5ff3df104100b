"""Whose telemetry is this? One indexed read of the token's hash at every request, and no cache (T2, T10).

A revocation is therefore effective in every process with the first request after its commit. The read must see that
commit at once: point `metering.read` at a primary server, never at a replica.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connections

from config.owners import owner_named
from metering.clusters.models import Mode, TokenState
from outbox.raw import raw_cursor

ALIAS = owner_named("metering").read_alias
BEARER = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/-]{1,512}={0,2}) *")
"""RFC 6750, bounded: whatever else the header may be, it is no token of ours."""
FIND = """
SELECT t.token_sha256, t.cluster_id, t.token_id, t.mode, t.state, t.expires_at, c.sink, c.rate_per_second, c.rate_burst
  FROM otlp_tokens t JOIN clusters c ON c.cluster_id = t.cluster_id
 WHERE t.token_sha256 = %s
"""


class Reason(StrEnum):
    """Why a request is not let in: the closed values of the metric's label."""

    MISSING_HEADER = "missing_header"
    """There is no Authorization header."""
    MALFORMED_HEADER = "malformed_header"
    """It is not `Bearer` and one token."""
    TOKEN_NOT_FOUND = "token_not_found"  # noqa: S105  # the name of a reason
    """No cluster ever had this token."""
    TOKEN_REVOKED = "token_revoked"  # noqa: S105  # likewise
    """An administrator revoked it."""
    TOKEN_EXPIRED = "token_expired"  # noqa: S105  # likewise
    """Its successor's grace is over."""


class AuthenticationFailed(Exception):
    """The token opens nothing. Permanent: give the collector the present PRIMARY token of its cluster."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The cluster behind a token, and what is set for it. `None` means: as for every cluster."""

    cluster_id: int
    token_id: UUID
    mode: Mode
    sink: str | None
    rate_per_second: int | None = None
    rate_burst: int | None = None


def authenticate(header: bytes | None, now: datetime) -> Authenticated:
    """The cluster of the token in an Authorization header's value, as it came.

    Raises `AuthenticationFailed`, which holds no part of the header, or Django's database error, which says nothing
    about the token: the connection is given up, so that the next call makes a new one.
    """
    if header is None:
        raise AuthenticationFailed(Reason.MISSING_HEADER)
    found = BEARER.fullmatch(header)
    if found is None:
        raise AuthenticationFailed(Reason.MALFORMED_HEADER)
    wanted = hashlib.sha256(found[1]).hexdigest()
    try:
        with raw_cursor(ALIAS) as cursor:
            row = cursor.execute(FIND, [wanted]).fetchone()
    except (DatabaseError, InterfaceError):
        connections[ALIAS].close()
        raise
    if row is None or not hmac.compare_digest(row[0], wanted):
        raise AuthenticationFailed(Reason.TOKEN_NOT_FOUND)
    _, cluster_id, token_id, mode, state, expires_at, sink, rate_per_second, rate_burst = row
    if state == TokenState.REVOKED:
        raise AuthenticationFailed(Reason.TOKEN_REVOKED)
    if expires_at is not None and now >= expires_at:
        raise AuthenticationFailed(Reason.TOKEN_EXPIRED)
    return Authenticated(cluster_id, token_id, Mode(mode), sink, rate_per_second, rate_burst)
