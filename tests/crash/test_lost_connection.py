"""The server ends a connection between the consumer's commit and the ack (D13)."""

import pytest

from tests.crash.processes import Crew, ended, go_on, reached
from tests.crash.proof import drained, outcomes, prove_applied_once
from tests.outbox.make import admission
from tests.verify.tamper import administrator
from tests.verify.world import append

TERMINATE = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
 WHERE datname = current_database() AND application_name LIKE %s AND pid <> pg_backend_pid()
"""


@pytest.mark.trap("D13")
@pytest.mark.parametrize(
    ("step", "sessions"),
    [
        pytest.param("delivered", "default.dispatch", id="dispatcher's sessions, before the settle"),
        pytest.param("in_settle", "default.dispatch", id="dispatcher's sessions, inside the settle"),
        pytest.param("in_inbox", "default", id="the projector's session, inside its transaction"),
    ],
)
def test_a_terminated_session_is_replaced_and_redelivery_meets_the_receipt(
    step: str, sessions: str, crew: Crew
) -> None:
    append(*admission())
    worker = crew.dispatcher(CRASH_PAUSE=step)
    reached(worker, step)
    with administrator("core") as connection:
        found = connection.execute(TERMINATE, [sessions]).fetchone()
    assert found is not None
    assert found[0] >= 1
    go_on(worker)
    drained()
    ended(worker)
    prove_applied_once(2)
    assert outcomes()["acknowledged"] == 2
