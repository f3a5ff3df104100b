"""Connectors and deliveries in this process, where nothing depends on the web server."""

import time
from uuid import UUID

from django.utils import timezone

from attachments.connectors.authenticate import authenticate
from attachments.connectors.configure import Created, create_connector
from attachments.connectors.errors import PayloadConflict
from attachments.connectors.ingest import Ingested, ingest, operation
from attachments.connectors.models import Connector
from attachments.connectors.signature import Secret
from billing.commercial.hooks import Operation
from tests.connectors.provider import BODY, sign

ACTOR = "alice"
__all__ = ["ACTOR", "BODY", "connector", "deliver", "operation_of"]


def connector(*, tenant: str, name: str = "bank") -> Created:
    """A connector of the tenant, with its first secret."""
    return create_connector(
        name=name, tenant_kind="organization", tenant_id=tenant, provider_code="bank_one", actor=ACTOR
    )


def deliver(connector_id: UUID, secret: Secret, webhook_id: str = "msg", body: bytes = BODY) -> Ingested | None:
    """Deliver one event; None if it conflicts."""
    seconds = int(time.time())
    headers = {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": sign(secret.text, webhook_id, seconds, body),
    }
    now = timezone.now()
    delivery = authenticate(connector_id=str(connector_id), headers=headers, body=body, now=now)
    try:
        return ingest(delivery, at=now)
    except PayloadConflict:
        return None


def operation_of(connector_id: UUID, *, webhook_id: str, body_sha256: str) -> Operation:
    """The operation that this event would be."""
    row = Connector.objects.using("attachments.read").get(connector_id=connector_id)
    return operation(
        tenant_kind=row.tenant_kind,
        tenant_id=row.tenant_id,
        provider_code=row.provider_code,
        configuration_digest=row.digest,
        webhook_id=webhook_id,
        body_sha256=body_sha256,
    )
