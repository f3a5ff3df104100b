"""One fixed example of each contract of finalization."""

from billing.finalization.contracts import BillingFinalizationWork
from outbox.contracts.contract import Contract
from outbox.contracts.examples import OCCURRED_AT
from upstream.admission.contracts.examples import MANIFEST

EXAMPLES: dict[str, Contract] = {
    "BillingFinalizationWork": BillingFinalizationWork.first(MANIFEST, created_at=OCCURRED_AT),
}
