"""kill -9 at any moment of a mixed load, again and again; then one sweep, and everything agrees (C9, F4).

Short in the suite; FILES_KILLS says how often the long form kills. FILES_SEED repeats the decisions of an earlier run
(not its races).
"""

import os
import random
import threading
from pathlib import Path

import pytest

from attachments.files.sweep import Swept, sweep
from tests.commercial.make import subscribe
from tests.files.killing import prove, sweep_all
from tests.files.load import Load
from tests.files.papers import intents

KILLS = int(os.environ.get("FILES_KILLS") or 0)
LONGEST_PEACE_SECONDS = 0.7
PROCESSES = 3

pytestmark = [pytest.mark.spec("C5", "C9"), pytest.mark.trap("F4")]


def kill_at_random(kills: int, root: Path) -> None:
    """Kill so many processes at random moments under load, sweep once, and prove everything."""
    seed = os.environ.get("FILES_SEED") or str(random.SystemRandom().randrange(10**9))
    print(f"\nFILES_SEED={seed}")
    chance = random.Random(seed)
    contract = subscribe(basis="bytes", tool="storage", dimension="attachment.upload", limit=10**12)
    loads = [Load(contract.tenant_id, chance.random()) for _ in range(PROCESSES)]
    try:
        for _ in range(kills - PROCESSES):
            threading.Event().wait(chance.random() * LONGEST_PEACE_SECONDS)  # kills come in real time
            loads.pop(chance.randrange(PROCESSES)).kill()
            loads.append(Load(contract.tenant_id, chance.random()))
    finally:
        for load in loads:
            load.kill()
    found = sweep_all()
    print(f"killed {kills}; the last sweep: {found}; changes: {len(intents())}")
    prove(root)
    assert sweep() == Swept()
    assert {state for _, state, _ in intents()} == {"kept", "undone"}


def test_fifteen_random_kills_under_a_mixed_load(desk: Path) -> None:
    kill_at_random(15, desk)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.skipif(not KILLS, reason="FILES_KILLS is not set; `make soak` sets it")
def test_random_kills_under_a_mixed_load_for_long(desk: Path) -> None:
    kill_at_random(KILLS, desk)
