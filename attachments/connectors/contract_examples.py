"""One fixed example of each contract of connectors."""

from attachments.connectors.contracts import AcceptedConnectorEvent, FinancialConnectorConfiguration
from outbox.contracts.contract import Contract

CONNECTOR = "019ca2f6-0800-7000-8000-000000000001"

EXAMPLES: dict[str, Contract] = {
    "FinancialConnectorConfiguration": FinancialConnectorConfiguration.issue(
        ref=f"financial-connector:{CONNECTOR}",
        connector_id=CONNECTOR,
        tenant_kind="organization",
        tenant_id="org:acme",
        provider_code="bank_one",
    ),
    "AcceptedConnectorEvent": AcceptedConnectorEvent(
        event_id="019ca2f6-0800-7000-8000-000000000002", accepted_at="2026-03-02T12:00:00.000000Z"
    ),
}
