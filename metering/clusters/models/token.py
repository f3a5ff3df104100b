"""Bearer tokens of clusters: their hash, the mode of their events, and until when they are accepted (T2, T3)."""

from datetime import timedelta

import pgtrigger
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from metering.clusters.models.cluster import Cluster, Mode
from outbox.guards import Guard, is_sha256, never_delete, refusal, refuse_when

GRACE_FLOOR = timedelta(hours=72)
"""No rotation leaves collectors less time than this to take up the new token, whatever the settings say."""


class TokenState(models.TextChoices):
    """Where a token stands. `TRANSITIONS` says how the states follow each other."""

    MINTED = "minted", "Minted: accepted, and on its way into the secret store"
    PRIMARY = "primary", "Primary: accepted, and what the secret store gives to collectors"
    UNSETTLED = "unsettled", "Unsettled: accepted; whether the secret store has it is not known, so rotate again"
    SUPERSEDED = "superseded", "Superseded: accepted until it expires, so that collectors can take up its successor"
    REVOKED = "revoked", "Revoked: refused at once and for ever; terminal"


TRANSITIONS: dict[TokenState, dict[TokenState, str]] = {
    TokenState.MINTED: {
        TokenState.PRIMARY: "the secret store has it",
        TokenState.UNSETTLED: "the store failed, or the rotation died",
        TokenState.REVOKED: "revoke",
    },
    TokenState.PRIMARY: {TokenState.SUPERSEDED: "rotate", TokenState.REVOKED: "revoke"},
    TokenState.UNSETTLED: {TokenState.SUPERSEDED: "rotate", TokenState.REVOKED: "revoke"},
    TokenState.SUPERSEDED: {TokenState.REVOKED: "revoke"},
    TokenState.REVOKED: {},
}
_STEPS = ", ".join(f"('{a.value}', '{b.value}')" for a, steps in TRANSITIONS.items() for b in steps)


class OtlpToken(models.Model):
    """One token of one cluster. Every state change commits with its audit entry."""

    token_id = models.UUIDField(primary_key=True)
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, db_index=False)
    token_sha256 = models.TextField(unique=True)
    mode = models.TextField(choices=Mode)
    state = models.TextField(choices=TokenState, default=TokenState.MINTED)
    issued_at = models.DateTimeField(db_default=Now())
    handed_over_at = models.DateTimeField(null=True, help_text="When the secret store had it.")
    superseded_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True, help_text="The first moment at which it is refused.")
    revoked_at = models.DateTimeField(null=True)

    owner_may_update = ("state", "handed_over_at", "superseded_at", "expires_at", "revoked_at")

    class Meta:
        db_table = "otlp_tokens"
        constraints = [
            models.CheckConstraint(name="otlp_token_hash", condition=is_sha256("token_sha256")),
            models.CheckConstraint(name="otlp_token_mode_closed", condition=Q(mode__in=Mode.values)),
            models.CheckConstraint(name="otlp_token_state_closed", condition=Q(state__in=TokenState.values)),
            models.CheckConstraint(
                name="otlp_token_shape",
                condition=Q(
                    state__in=(TokenState.MINTED, TokenState.UNSETTLED),
                    handed_over_at=None,
                    superseded_at=None,
                    expires_at=None,
                    revoked_at=None,
                )
                | Q(
                    state=TokenState.PRIMARY,
                    handed_over_at__isnull=False,
                    superseded_at=None,
                    expires_at=None,
                    revoked_at=None,
                )
                | Q(
                    state=TokenState.SUPERSEDED,
                    superseded_at__isnull=False,
                    expires_at__isnull=False,
                    revoked_at=None,
                )
                | Q(state=TokenState.REVOKED, revoked_at__isnull=False),
            ),
            models.CheckConstraint(
                name="otlp_token_grace_floor",
                condition=Q(superseded_at=None, expires_at=None)
                | Q(superseded_at__isnull=False, expires_at__gte=F("superseded_at") + GRACE_FLOOR),
            ),
            models.UniqueConstraint(
                name="otlp_token_one_primary", fields=["cluster"], condition=Q(state=TokenState.PRIMARY)
            ),
            models.UniqueConstraint(
                name="otlp_token_one_rotation", fields=["cluster"], condition=Q(state=TokenState.MINTED)
            ),
        ]
        indexes = [models.Index(name="otlp_token_of_cluster", fields=["cluster", "token_id"])]
        triggers = [
            *never_delete(name="otlp_token", message="A token is never deleted; revoke it."),
            refuse_when(
                name="otlp_token_born_minted",
                operation=pgtrigger.Insert,
                condition="NEW.state IS DISTINCT FROM 'minted'",
                message="A token begins as minted.",
            ),
            refuse_when(
                name="otlp_token_steps",
                operation=pgtrigger.Update,
                condition=f"(OLD.state, NEW.state) NOT IN ({_STEPS})",
                message="A token's state follows the table of transitions.",
            ),
            refuse_when(
                name="otlp_token_frozen",
                operation=pgtrigger.Update,
                condition="(NEW.token_id, NEW.cluster_id, NEW.token_sha256, NEW.mode, NEW.issued_at) IS DISTINCT FROM"
                " (OLD.token_id, OLD.cluster_id, OLD.token_sha256, OLD.mode, OLD.issued_at)"
                " OR (OLD.handed_over_at IS NOT NULL AND NEW.handed_over_at IS DISTINCT FROM OLD.handed_over_at)"
                " OR (OLD.expires_at IS NOT NULL AND (NEW.superseded_at, NEW.expires_at) IS DISTINCT FROM"
                " (OLD.superseded_at, OLD.expires_at))",
                message="Of a token only its state moves on, and a deadline stays what it was set to.",
            ),
            Guard(
                name="otlp_token_audited",
                when=pgtrigger.After,
                operation=pgtrigger.Insert | pgtrigger.Update,
                timing=pgtrigger.Deferred,
                func=f"""
                    IF NOT EXISTS (SELECT 1 FROM public.admin_audit_entries a
                                    WHERE a.token_id = NEW.token_id AND a.action = 'token_' || NEW.state) THEN
                        {refusal("otlp_token_audited", "A token's state changes together with its audit entry.")}
                    END IF;
                    RETURN NULL;
                """,
            ),
        ]
