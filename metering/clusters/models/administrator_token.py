"""Tokens with which a platform administrator calls the API without a session."""

from datetime import timedelta

import pgtrigger
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from outbox.guards import Guard, is_sha256, never_delete, refusal, refuse_when

LONGEST_LIFE = timedelta(days=366)


class AdministratorToken(models.Model):
    """A credential of an account of core's login. It opens nothing by itself: the account must hold the permission."""

    token_id = models.UUIDField(primary_key=True)
    account_id = models.BigIntegerField(help_text="The account in core's database.")
    account_name = models.TextField(help_text="Its name when the token was minted.")
    token_sha256 = models.TextField(unique=True)
    issued_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(help_text="The first moment at which it is refused.")
    revoked_at = models.DateTimeField(null=True)

    owner_may_update = ("revoked_at",)

    class Meta:
        db_table = "administrator_tokens"
        constraints = [
            models.CheckConstraint(name="administrator_token_hash", condition=is_sha256("token_sha256")),
            models.CheckConstraint(
                name="administrator_token_life",
                condition=Q(expires_at__gt=F("issued_at"), expires_at__lte=F("issued_at") + LONGEST_LIFE),
            ),
        ]
        indexes = [models.Index(name="administrator_token_of", fields=["account_id", "token_id"])]
        triggers = [
            *never_delete(name="administrator_token", message="A token is never deleted; revoke it."),
            refuse_when(
                name="administrator_token_frozen",
                operation=pgtrigger.Update,
                condition="OLD.revoked_at IS NOT NULL OR (NEW.token_id, NEW.account_id, NEW.account_name,"
                " NEW.token_sha256, NEW.issued_at, NEW.expires_at) IS DISTINCT FROM (OLD.token_id, OLD.account_id,"
                " OLD.account_name, OLD.token_sha256, OLD.issued_at, OLD.expires_at)",
                message="A token is revoked once, and nothing else of it changes.",
            ),
            Guard(
                name="administrator_token_audited",
                when=pgtrigger.After,
                operation=pgtrigger.Insert | pgtrigger.Update,
                timing=pgtrigger.Deferred,
                func=f"""
                    IF NOT EXISTS (SELECT 1 FROM public.admin_audit_entries a
                                    WHERE a.token_id = NEW.token_id AND a.action = CASE WHEN NEW.revoked_at IS NULL
                                          THEN 'administrator_token_minted' ELSE 'administrator_token_revoked' END) THEN
                        {refusal("administrator_token_audited", "A token changes together with its audit entry.")}
                    END IF;
                    RETURN NULL;
                """,
            ),
        ]
