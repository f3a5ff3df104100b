"""Who did what to clusters, tokens and managed keys: append-only."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from metering.clusters.models.cluster import Cluster
from outbox.guards import append_only


class AuditAction(models.TextChoices):
    """What was done. The actions on tokens are named after the state that the token went into."""

    CLUSTER_CREATED = "cluster_created", "Cluster created"
    CLUSTER_CHANGED = "cluster_changed", "Cluster changed: name, mode, sink or rate"
    TOKEN_MINTED = "token_minted", "Token minted: accepted from here on"
    TOKEN_PRIMARY = "token_primary", "Token became primary: the secret store has it"
    TOKEN_UNSETTLED = "token_unsettled", "Token unsettled: the secret store may or may not have it"
    TOKEN_SUPERSEDED = "token_superseded", "Token superseded: it got its deadline"
    TOKEN_REVOKED = "token_revoked", "Token revoked: refused from here on"
    KEYS_IMPORTED = "keys_imported", "Managed keys imported"
    ADMINISTRATOR_GRANTED = "administrator_granted", "Administrator granted: an account may manage tokens"
    ADMINISTRATOR_WITHDRAWN = "administrator_withdrawn", "Administrator withdrawn: an account may manage no tokens"
    ADMINISTRATOR_TOKEN_MINTED = "administrator_token_minted", "Administrator's token minted"
    ADMINISTRATOR_TOKEN_REVOKED = "administrator_token_revoked", "Administrator's token revoked"


class AdminAuditEntry(models.Model):
    """One act, written in the transaction that did it."""

    entry_id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    action = models.TextField(choices=AuditAction)
    actor = models.TextField(help_text="The account, or for commands the login on the machine.")
    through = models.TextField(help_text="session, command, or the administrator's token that was shown.")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, null=True, db_index=False)
    token_id = models.UUIDField(null=True, help_text="The cluster's or administrator's token it was done to.")
    detail = models.TextField()

    class Meta:
        db_table = "admin_audit_entries"
        verbose_name = "audit entry"
        verbose_name_plural = "audit entries"
        constraints = [
            models.CheckConstraint(name="audit_action_closed", condition=Q(action__in=AuditAction.values)),
            models.CheckConstraint(name="audit_names_who", condition=~Q(actor="") & ~Q(through="")),
            models.UniqueConstraint(
                name="audit_token_step_once", fields=["token_id", "action"], condition=Q(token_id__isnull=False)
            ),
        ]
        indexes = [models.Index(name="audit_of_cluster", fields=["cluster", "entry_id"])]
        triggers = append_only(name="audit", message="An audit entry never changes.")
