"""Access tokens of members: made once, shown once, kept as a hash."""

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from attachments.claims.errors import UnknownToken
from attachments.claims.members import ALIAS, Tenant, membership_of
from attachments.claims.models import AccessToken

PREFIX = "claims"
"""Lets a scanner of leaked secrets recognise a token."""
SECRET_BYTES = 32
"""256 random bits: nothing that could be guessed, so a fast hash protects what is stored."""


@dataclass(frozen=True, slots=True)
class Minted:
    """A token as its holder shows it. Its text never appears in a representation of it."""

    token_id: UUID
    text: str = field(repr=False)
    expires_at: datetime


def hash_of(text: str) -> str:
    """What the database keeps of a token."""
    return hashlib.sha256(text.encode()).hexdigest()


def mint(*, user_id: int, tenant: Tenant, life: timedelta) -> Minted:
    """A token of this member. Raises `UnknownMember`."""
    text = f"{PREFIX}_{secrets.token_urlsafe(SECRET_BYTES)}"
    with transaction.atomic(using=ALIAS, durable=True):
        token = AccessToken(
            token_id=uuid7(),
            membership=membership_of(user_id=user_id, tenant=tenant),
            token_sha256=hash_of(text),
            expires_at=Now() + life,
        )
        token.save(using=ALIAS, force_insert=True)
        token.refresh_from_db(using=ALIAS, fields=["expires_at"])
    return Minted(token.token_id, text, token.expires_at)


def revoke(*, token_id: UUID) -> bool:
    """Refuse a token from now on; False if it was revoked before. Raises `UnknownToken`."""
    with transaction.atomic(using=ALIAS, durable=True):
        rows = AccessToken.objects.using(ALIAS).filter(token_id=token_id)
        if rows.filter(revoked_at=None).update(revoked_at=Now()):
            return True
        if not rows.exists():
            raise UnknownToken(UnknownToken.__doc__)
        return False
