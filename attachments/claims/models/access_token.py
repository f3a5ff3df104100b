"""Tokens with which programs of a member call the API without a session."""

from datetime import timedelta

import pgtrigger
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from attachments.claims.models.membership import Membership
from outbox.guards import is_sha256, never_delete, refuse_when

LONGEST_LIFE = timedelta(days=366)


class AccessToken(models.Model):
    """Bound to one membership, so to one account and one tenant. It is refused as soon as either has ended."""

    token_id = models.UUIDField(primary_key=True)
    membership = models.ForeignKey(Membership, on_delete=models.PROTECT, db_index=False)
    token_sha256 = models.TextField(unique=True)
    issued_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(help_text="The first moment at which it is refused.")
    revoked_at = models.DateTimeField(null=True)

    owner_may_update = ("revoked_at",)

    class Meta:
        db_table = "access_tokens"
        constraints = [
            models.CheckConstraint(name="access_token_hash", condition=is_sha256("token_sha256")),
            models.CheckConstraint(
                name="access_token_life",
                condition=Q(expires_at__gt=F("issued_at"), expires_at__lte=F("issued_at") + LONGEST_LIFE),
            ),
        ]
        indexes = [models.Index(name="access_token_of", fields=["membership", "token_id"])]
        triggers = [
            *never_delete(name="access_token", message="A token is never deleted; revoke it."),
            refuse_when(
                name="access_token_frozen",
                operation=pgtrigger.Update,
                condition="OLD.revoked_at IS NOT NULL OR (NEW.token_id, NEW.membership_id, NEW.token_sha256,"
                " NEW.issued_at, NEW.expires_at) IS DISTINCT FROM (OLD.token_id, OLD.membership_id, OLD.token_sha256,"
                " OLD.issued_at, OLD.expires_at)",
                message="A token is revoked once, and nothing else of it changes.",
            ),
        ]
