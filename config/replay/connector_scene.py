"""A financial connector delivers: new events, one of them twice, one with another payload, one forged, one too many."""

import base64
import hashlib
import hmac
import json
import time
from uuid import UUID

from attachments.connectors.configure import create_connector
from attachments.connectors.errors import ConnectorConflict
from attachments.connectors.models import Connector
from attachments.connectors.rotate import rotate
from attachments.connectors.signature import Secret
from config.replay.calls import Answer, Api

NAME = "Demo ledger feed"
ACTOR = "demo"
QUOTA = 3
"""Events that the demo's plan accepts in a month."""


def deliver_events(*, url: str, tenant_id: str, month: str) -> dict[str, list[int]]:
    """The status of every answer, by what was delivered. Raises `NoAnswer`."""
    connector_id, secret = _connector(tenant_id)
    forger = Secret.fresh()

    def deliver(number: int, *, amount: int = 100, signer: Secret = secret) -> int:
        body = json.dumps({"type": "receipt.booked", "amount": amount + number}).encode()
        return _deliver(url, connector_id, webhook_id=f"evt-{month}-{number}", body=body, secret=signer).status

    return {
        "new": [deliver(number) for number in range(QUOTA)],
        "again": [deliver(0)],
        "conflicting": [deliver(0, amount=999)],
        "forged": [deliver(QUOTA, signer=forger)],
        "tooMany": [deliver(QUOTA)],
    }


def _connector(tenant_id: str) -> tuple[UUID, Secret]:
    """The demo's connector, with a secret of its own for this run."""
    try:
        made = create_connector(
            name=NAME, tenant_kind="organization", tenant_id=tenant_id, provider_code="demo_bank", actor=ACTOR
        )
    except ConnectorConflict:
        known = Connector.objects.using("attachments").get(name=NAME)
        return known.connector_id, rotate(connector_id=known.connector_id, actor=ACTOR).issued.secret
    return made.connector_id, made.issued.secret


def _deliver(url: str, connector_id: UUID, *, webhook_id: str, body: bytes, secret: Secret) -> Answer:
    seconds = str(int(time.time()))
    content = b".".join((webhook_id.encode(), seconds.encode(), body))
    signature = base64.b64encode(hmac.digest(secret.data, content, hashlib.sha256)).decode()
    headers = {
        "Content-Type": "application/json",
        "webhook-id": webhook_id,
        "webhook-timestamp": seconds,
        "webhook-signature": f"v1,{signature}",
    }
    return Api(url, headers).call("POST", f"/connectors/{connector_id}/events", body)
