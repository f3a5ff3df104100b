"""Create a connector: whose events they are, and its first secret."""

from dataclasses import dataclass
from typing import Literal, cast
from uuid import UUID

import structlog
from django.db import DatabaseError, transaction
from uuid_utils.compat import uuid7

from attachments.connectors.act import ALIAS, record
from attachments.connectors.contracts import FinancialConnectorConfiguration
from attachments.connectors.errors import InvalidConnector, translate
from attachments.connectors.models import ActKind, Connector
from attachments.connectors.rotate import Issued, issue
from attachments.connectors.signature import Secret
from outbox.contracts.canonical import encode_trusted
from outbox.contracts.contract import ContractViolation

log = structlog.get_logger("attachments.connectors")


@dataclass(frozen=True, slots=True)
class Created:
    """A new connector with its first secret."""

    connector_id: UUID
    issued: Issued


def create_connector(
    *, name: str, tenant_kind: str, tenant_id: str, provider_code: str, actor: str, secret: Secret | None = None
) -> Created:
    """Create it with a fresh secret, or with the one that the provider issued.

    Raises `InvalidConnector`, `ConnectorConflict`, `SecretUsedBefore`.
    """
    connector_id = uuid7()
    try:
        configuration = FinancialConnectorConfiguration.issue(
            ref=f"financial-connector:{connector_id}",
            connector_id=str(connector_id),
            tenant_kind=cast(Literal["organization", "personal"], tenant_kind),
            tenant_id=tenant_id,
            provider_code=provider_code,
        )
    except ContractViolation as error:
        raise InvalidConnector(f"{error}. {InvalidConnector.__doc__}") from error
    try:
        with transaction.atomic(using=ALIAS, durable=True):
            Connector.objects.using(ALIAS).create(
                connector_id=connector_id,
                name=name,
                tenant_kind=tenant_kind,
                tenant_id=tenant_id,
                provider_code=provider_code,
                digest=configuration.reference.digest,
                candidate=encode_trusted(configuration.candidate()).decode(),
            )
            record(kind=ActKind.CONNECTOR_CREATED, actor=actor, connector_id=connector_id)
            issued = issue(connector_id=connector_id, secret=secret or Secret.fresh(), actor=actor)
    except (DatabaseError, ValueError) as error:
        if isinstance(error, ValueError):
            raise InvalidConnector(InvalidConnector.__doc__) from error
        translate(error, unfit=InvalidConnector)
    log.info("connector_created", connector_id=str(connector_id), issued=str(issued.secret_id))
    return Created(connector_id, issued)
