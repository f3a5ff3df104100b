"""The answer to COMMIT is lost, and nobody can be asked: the provider is told to try again, and the event ends once."""

from collections.abc import Iterator

import pytest
from django.db import connections

from billing.commercial.hooks import OutcomeUnknown
from outbox import steps
from tests.commercial.conftest import swept_now
from tests.commercial.losing_proxy import LosingProxy, Lost, through_proxy
from tests.commercial.make import subscribe, usage, used_and_held
from tests.connectors.conftest import PLAN
from tests.connectors.facts import conflicts, events
from tests.connectors.make import BODY, connector, deliver

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.spec("C3", "C4", "C9")]


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> Iterator[LosingProxy]:
    """A wire between this thread and its database that loses what the test says, from just before COMMIT on."""
    with through_proxy("attachments", monkeypatch) as proxy:
        yield proxy
        steps.hook = None


@pytest.mark.parametrize("lost", Lost, ids=lambda lost: lost.value)
def test_an_event_whose_commit_nobody_knows_of_is_settled_by_the_next_delivery_and_the_sweep(
    losing: LosingProxy, lost: Lost
) -> None:
    made = connector(tenant=subscribe(**PLAN).tenant_id)

    def lose(step: str) -> None:
        if step == "commercial.before_commit":
            losing.armed = lost

    steps.hook = lose
    with pytest.raises(OutcomeUnknown):
        deliver(made.connector_id, made.issued.secret)
    steps.hook, losing.armed = None, None
    connections["attachments"].close()
    committed = lost is Lost.ANSWER
    assert (events(), usage(), used_and_held()) == (int(committed), 0, (0, 1))
    told = deliver(made.connector_id, made.issued.secret)
    assert told
    assert told.outcome == ("replayed" if committed else "accepted")
    assert swept_now().settled == int(committed)
    assert deliver(made.connector_id, made.issued.secret, body=BODY + b" ") is None
    assert (events(), conflicts(), usage(), used_and_held()) == (1, 1, 1, (1, 0))
