"""Who did what to connectors and their secrets: append-only."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from attachments.connectors.models.connector import Connector
from attachments.connectors.models.secret import ConnectorSecret
from outbox.guards import append_only


class ActKind(models.TextChoices):
    """What was done. The acts on secrets are named after the state that the secret went into."""

    CONNECTOR_CREATED = "connector_created", "Connector created"
    SECRET_CURRENT = "secret_current", "Secret became current: accepted from here on"
    SECRET_SUPERSEDED = "secret_superseded", "Secret superseded: it got its deadline"
    SECRET_REVOKED = "secret_revoked", "Secret revoked: refused from here on"


class ConnectorAct(models.Model):
    """One act, written in the transaction that did it."""

    act_id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    kind = models.TextField(choices=ActKind)
    actor = models.TextField(help_text="The login on the machine that ran the command.")
    connector = models.ForeignKey(Connector, on_delete=models.PROTECT, db_index=False)
    secret = models.ForeignKey(ConnectorSecret, on_delete=models.PROTECT, null=True, db_index=False)

    class Meta:
        db_table = "financial_connector_acts"
        verbose_name = "act"
        constraints = [
            models.CheckConstraint(name="connector_act_kind_closed", condition=Q(kind__in=ActKind.values)),
            models.CheckConstraint(name="connector_act_names_who", condition=~Q(actor="")),
            models.CheckConstraint(
                name="connector_act_about",
                condition=Q(kind=ActKind.CONNECTOR_CREATED, secret=None)
                | (~Q(kind=ActKind.CONNECTOR_CREATED) & Q(secret__isnull=False)),
            ),
            models.UniqueConstraint(
                name="connector_act_once", fields=["secret", "kind"], condition=Q(secret__isnull=False)
            ),
        ]
        indexes = [models.Index(name="connector_act_of_connector", fields=["connector", "act_id"])]
        triggers = append_only(name="connector_act", message="An act never changes.")
