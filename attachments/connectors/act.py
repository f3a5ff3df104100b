"""Write what was done to a connector, and by whom, in the transaction that does it."""

import getpass
from collections.abc import Iterable
from uuid import UUID

from attachments.connectors.models import ActKind, ConnectorAct
from config.owners import owner_named

ALIAS = owner_named("attachments").alias


def actor_of_command() -> str:
    """The login under which a command runs on this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def record(*, kind: ActKind, actor: str, connector_id: UUID, secrets: Iterable[UUID | None] = (None,)) -> None:
    """Append one act per secret, or one about the connector, inside the caller's transaction on `attachments`."""
    ConnectorAct.objects.using(ALIAS).bulk_create(
        ConnectorAct(kind=kind, actor=actor, connector_id=connector_id, secret_id=secret) for secret in secrets
    )
