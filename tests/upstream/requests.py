"""Admission requests for tests."""

import uuid
from datetime import UTC, datetime

from upstream.admission.contracts import EstimatedQuantity, RunAdmissionRequest

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def request(  # the fields of the request
    account: str,
    *,
    operation: str | None = None,
    tenant: str = "org-1",
    input_tokens: int = 1000,
    output_tokens: int = 100,
    correlation: str = "correlation-1",
) -> RunAdmissionRequest:
    """A request that costs 150,000 picos per input token and 600,000 per output token."""
    return RunAdmissionRequest(
        tenant_kind="organization",
        tenant_id=tenant,
        workspace_id="workspace-1",
        operation_id=operation or f"operation-{uuid.uuid4().hex}",
        correlation_id=correlation,
        billing_account_id=account,
        requested_at="2026-01-02T03:04:05.000000Z",
        estimated_quantities=(
            EstimatedQuantity(charge_dimension_key="llm.input_tokens", quantity=input_tokens),
            EstimatedQuantity(charge_dimension_key="llm.output_tokens", quantity=output_tokens),
        ),
    )


COST = 1000 * 150_000 + 100 * 600_000
"""Pico-USD of the default request."""
