"""Write what was done, by whom and with which credential, in the transaction that does it."""

import getpass
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from config.owners import owner_named
from metering.clusters.models import AdminAuditEntry, AuditAction

ALIAS = owner_named("metering").alias


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: an account, and what it showed (`session`, `command`, or `administrator-token:<id>`)."""

    name: str
    through: str

    @classmethod
    def of_command(cls) -> "Actor":
        """The login under which a command runs on this machine."""
        try:
            name = getpass.getuser()
        except (KeyError, OSError):
            name = "unknown"
        return cls(name=name, through="command")


@dataclass(frozen=True, slots=True)
class Act:
    """One act: what, to which cluster or token, and what a reader of the audit should know beside."""

    action: AuditAction
    cluster_id: int | None = None
    token_id: UUID | None = None
    detail: str = ""


def record(actor: Actor, acts: Sequence[Act]) -> None:
    """Append inside the caller's transaction on `metering`."""
    AdminAuditEntry.objects.using(ALIAS).bulk_create(
        AdminAuditEntry(
            action=act.action,
            actor=actor.name,
            through=actor.through,
            cluster_id=act.cluster_id,
            token_id=act.token_id,
            detail=act.detail,
        )
        for act in acts
    )
