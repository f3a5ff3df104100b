"""Signing secrets of connectors: sealed, one current per connector, older ones accepted until their grace is over."""

import pgtrigger
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Length, Now
from django.db.models.lookups import GreaterThanOrEqual

from attachments.connectors.models.connector import Connector
from outbox.guards import Guard, is_sha256, never_delete, refusal, refuse_when

SHORTEST_SEALED = 12 + 24 + 16
"""Bytes: the nonce, the shortest secret there may be, the tag."""


class SecretState(models.TextChoices):
    """Where a secret stands. `TRANSITIONS` says how the states follow each other."""

    CURRENT = "current", "Current: what the provider signs with"
    SUPERSEDED = "superseded", "Superseded: accepted until its grace is over, so that the provider can take up the next"
    REVOKED = "revoked", "Revoked: refused at once and for ever; terminal"


TRANSITIONS: dict[SecretState, dict[SecretState, str]] = {
    SecretState.CURRENT: {SecretState.SUPERSEDED: "rotate", SecretState.REVOKED: "revoke"},
    SecretState.SUPERSEDED: {SecretState.REVOKED: "revoke"},
    SecretState.REVOKED: {},
}
_STEPS = ", ".join(f"('{a.value}', '{b.value}')" for a, steps in TRANSITIONS.items() for b in steps)


class ConnectorSecret(models.Model):
    """One secret of one connector. Every state change commits with its act."""

    secret_id = models.UUIDField(primary_key=True)
    connector = models.ForeignKey(Connector, on_delete=models.PROTECT, db_index=False)
    sealed = models.BinaryField(help_text="The secret, encrypted and bound to this row.")
    sealed_with = models.TextField(help_text="Names the key that opens it, without telling it.")
    secret_sha256 = models.TextField(unique=True, help_text="So that no secret is ever used twice.")
    state = models.TextField(choices=SecretState, default=SecretState.CURRENT)
    issued_at = models.DateTimeField(db_default=Now())
    superseded_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True, help_text="The first moment at which it is refused.")
    revoked_at = models.DateTimeField(null=True)

    owner_may_update = ("state", "superseded_at", "expires_at", "revoked_at")

    class Meta:
        db_table = "financial_connector_secrets"
        verbose_name = "secret"
        constraints = [
            models.CheckConstraint(
                name="connector_secret_sealed",
                condition=Q(GreaterThanOrEqual(Length("sealed"), SHORTEST_SEALED)) & is_sha256("sealed_with"),
            ),
            models.CheckConstraint(name="connector_secret_hash", condition=is_sha256("secret_sha256")),
            models.CheckConstraint(name="connector_secret_state_closed", condition=Q(state__in=SecretState.values)),
            models.CheckConstraint(
                name="connector_secret_shape",
                condition=Q(state=SecretState.CURRENT, superseded_at=None, expires_at=None, revoked_at=None)
                | Q(
                    state=SecretState.SUPERSEDED,
                    superseded_at__isnull=False,
                    expires_at__isnull=False,
                    revoked_at=None,
                )
                | Q(state=SecretState.REVOKED, revoked_at__isnull=False),
            ),
            models.CheckConstraint(
                name="connector_secret_deadline",
                condition=Q(superseded_at=None, expires_at=None)
                | Q(superseded_at__isnull=False, expires_at__gte=F("superseded_at")),
            ),
            models.UniqueConstraint(
                name="connector_secret_one_current", fields=["connector"], condition=Q(state=SecretState.CURRENT)
            ),
        ]
        indexes = [models.Index(name="connector_secret_of_connector", fields=["connector", "secret_id"])]
        triggers = [
            *never_delete(name="connector_secret", message="A secret is never deleted; revoke it."),
            refuse_when(
                name="connector_secret_born_current",
                operation=pgtrigger.Insert,
                condition="NEW.state IS DISTINCT FROM 'current'",
                message="A secret begins as current.",
            ),
            refuse_when(
                name="connector_secret_steps",
                operation=pgtrigger.Update,
                condition=f"(OLD.state, NEW.state) NOT IN ({_STEPS})",
                message="A secret's state follows the table of transitions.",
            ),
            refuse_when(
                name="connector_secret_frozen",
                operation=pgtrigger.Update,
                condition="(NEW.secret_id, NEW.connector_id, NEW.sealed, NEW.sealed_with, NEW.secret_sha256,"
                " NEW.issued_at) IS DISTINCT FROM (OLD.secret_id, OLD.connector_id, OLD.sealed, OLD.sealed_with,"
                " OLD.secret_sha256, OLD.issued_at)"
                " OR (OLD.expires_at IS NOT NULL AND (NEW.superseded_at, NEW.expires_at) IS DISTINCT FROM"
                " (OLD.superseded_at, OLD.expires_at))",
                message="Of a secret only its state moves on, and a deadline stays what it was set to.",
            ),
            Guard(
                name="connector_secret_told",
                when=pgtrigger.After,
                operation=pgtrigger.Insert | pgtrigger.Update,
                timing=pgtrigger.Deferred,
                func=f"""
                    IF NOT EXISTS (SELECT 1 FROM public.financial_connector_acts a
                                    WHERE a.secret_id = NEW.secret_id AND a.kind = 'secret_' || NEW.state) THEN
                        {refusal("connector_secret_told", "A secret's state changes together with its act.")}
                    END IF;
                    RETURN NULL;
                """,
            ),
        ]
