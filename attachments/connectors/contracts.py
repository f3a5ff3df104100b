"""Whose events a connector delivers, and the answer to an accepted event (C4)."""

from typing import Annotated, Literal

from pydantic import StringConstraints

from outbox.contracts.contract import ContentAddressed, Contract, Identifier, Timestamp

ProviderCode = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
"""The provider behind a connector, as commercial facts name it: a short word, no identifier."""
ConnectorId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
"""A UUID in its one written form."""


class FinancialConnectorConfiguration(ContentAddressed, own="financial_connector", version="1"):
    """Whose events these are. It never changes; secrets are no part of it, so a rotation leaves its digest alone."""

    connector_id: ConnectorId
    tenant_kind: Literal["organization", "personal"]
    tenant_id: Identifier
    provider_code: ProviderCode


class AcceptedConnectorEvent(Contract):
    """The answer to an accepted event, to the first delivery and to each that repeats it."""

    event_id: Identifier
    """Our own id of the event; what the sender called it is not repeated."""
    accepted_at: Timestamp


PUBLISHED = (AcceptedConnectorEvent,)
