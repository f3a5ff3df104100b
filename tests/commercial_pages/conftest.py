"""A logged-in operator, and quota in every state to look at."""

from dataclasses import dataclass

import pytest

from billing.commercial import hooks
from billing.commercial.hooks import Permit
from tests.admin.conftest import client, looker, make_operator, quick_hashes, static_files
from tests.commercial.conftest import swept_now
from tests.commercial.make import AT, BUSINESS, Contract, operation, subscribe
from tests.commercial.test_cost import COST, import_costs

__all__ = ["client", "looker", "make_operator", "quick_hashes", "static_files"]


@dataclass(frozen=True, slots=True)
class World:
    """One tenant: 3 used, 2 held in their second generation, one reservation found by a sweep; a limit of 10."""

    contract: Contract
    settled: Permit
    held: Permit
    left: Permit


@pytest.fixture
def quota(database: None) -> World:
    """Made by the hooks alone."""
    import_costs()
    contract = subscribe(limit=10, cost=COST, tenant="org:looked-at")
    with hooks.business_transaction(using=BUSINESS) as work:
        settled = work.reserve(operation(contract, provider="bank_one"), quantity=3, at=AT)
        work.marker()
    left = hooks.reserve(operation(contract), quantity=1, using=BUSINESS, at=AT)
    swept_now()
    hooks.release(hooks.reserve(operation(contract, "again"), quantity=2, using=BUSINESS, at=AT))
    held = hooks.reserve(operation(contract, "again"), quantity=2, using=BUSINESS, at=AT)
    return World(contract, settled, held, left)
