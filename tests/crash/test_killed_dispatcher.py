"""kill -9 of a dispatcher at every step between claim and settle, and of the projector inside its transaction."""

import pytest

from tests.crash.processes import Crew, ended, killed
from tests.crash.proof import drained, outcomes, prove_applied_once
from tests.outbox.conftest import rows
from tests.outbox.make import admission
from tests.verify.world import append

STEPS = {
    "claimed": "after the claim committed",
    "in_inbox": "the projector, inside its inbox transaction",
    "inbox_committed": "the projector, right after its commit",
    "delivered": "after the consumer committed, before the settle",
    "in_settle": "inside the settle transaction",
    "settled": "after the settle committed",
}


@pytest.mark.spec("O19", "O20")
@pytest.mark.parametrize("step", [pytest.param(step, id=what) for step, what in STEPS.items()])
def test_a_dispatcher_killed_at_any_step_loses_nothing_and_repeats_no_effect(step: str, crew: Crew) -> None:
    append(*[event for _ in range(5) for event in admission()])
    killed(crew.dispatcher(CRASH_KILL=step))
    applied = rows("SELECT count(*) FROM operations_projection_applied_receipts")
    assert applied == [(0 if step in {"claimed", "in_inbox"} else 10,)]
    rescuer = crew.dispatcher()
    drained()
    ended(rescuer)
    prove_applied_once(10)
    lost = {} if step == "settled" else {"lease_expired_unknown": 10}
    assert outcomes() == {"acknowledged": 10, **lost}
