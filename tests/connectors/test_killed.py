"""kill -9 of the web process, or a lost database, at each step: the sweep and the replay end the event once."""

import http.client

import pytest

from tests.commercial.conftest import swept_now
from tests.commercial.make import markers, rows, states, usage, used_and_held
from tests.connectors.facts import READ, conflicts, events
from tests.connectors.provider import BODY, Answer, Event, Provider
from tests.ground.waiting import until

BEFORE = (
    "connectors.turn",
    "commercial.reserved",
    "commercial.marked",
    "connectors.stored",
    "commercial.before_commit",
)
AFTER = ("commercial.committed",)


def killed_at(step: str, provider: Provider, event: Event) -> None:
    """Deliver the event to a process that dies at the step; return when its transaction is gone."""
    provider.web.kill_at(step)
    with pytest.raises((OSError, http.client.HTTPException)):
        provider.send(event)
    until(lambda: rows("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", alias=READ) == [(0,)])
    until(provider.web.is_live)


def delivered(provider: Provider, event: Event) -> Answer:
    """Deliver it as a provider does that is told to try again."""
    answers: list[Answer] = []

    def is_accepted() -> bool:
        answers.append(provider.send(event))
        return answers[-1].status == 200

    until(is_accepted)
    assert {answer.status for answer in answers[:-1]} <= {503}
    return answers[-1]


@pytest.mark.spec("C3", "C4", "C9")
@pytest.mark.trap("M8")
@pytest.mark.parametrize("step", [*BEFORE, *AFTER])
def test_after_a_kill_the_sweep_and_the_replay_end_the_event_once(provider: Provider, step: str) -> None:
    event = Event()
    killed_at(step, provider, event)
    committed = step in AFTER
    assert (events(), usage()) == (int(committed), 0)
    swept = swept_now()
    assert (swept.settled, swept.released) == (int(committed), int(step not in {"connectors.turn", *AFTER}))
    assert (usage(), used_and_held()) == (int(committed), (int(committed), 0))
    first = delivered(provider, event)
    assert provider.send(event).told == first.told
    assert provider.send(Event(event.webhook_id, BODY + b" ")).status == 409
    assert (events(), conflicts(), usage(), used_and_held()) == (1, 1, 1, (1, 0))


@pytest.mark.spec("C2", "C9")
def test_after_a_kill_the_replay_goes_on_without_waiting_for_the_sweep(provider: Provider) -> None:
    event = Event()
    killed_at("connectors.stored", provider, event)
    assert used_and_held() == (0, 1)
    delivered(provider, event)
    assert (events(), usage(), used_and_held(), swept_now().settled) == (1, 1, (1, 0), 0)


@pytest.mark.spec("C2", "C3")
@pytest.mark.parametrize("step", ["connectors.stored", "commercial.before_commit"])
def test_what_rolls_back_leaves_nothing_and_may_be_delivered_again(provider: Provider, step: str) -> None:
    event = Event()
    provider.web.fail_at(step)
    answer = provider.send(event)
    assert (answer.status, answer.problem) == (503, "unavailable")
    assert "retry-after" in answer.headers
    assert (events(), usage(), used_and_held(), states()) == (0, 0, (0, 0), [("released", 1, "compensation")])
    assert provider.send(event).status == 200
    assert (events(), usage(), states()) == (1, 1, [("settled", 2, "completion")])
    assert [verdict for _, _, verdict in markers()] == ["refused", "committed"]


@pytest.mark.trap("M9")
def test_a_conflict_is_recorded_also_if_the_process_dies_before_it_is_told(provider: Provider) -> None:
    event = Event()
    provider.send(event)
    killed_at("commercial.committed", provider, Event(event.webhook_id, BODY + b" "))
    assert (events(), conflicts(), usage()) == (1, 1, 1)
    assert provider.send(Event(event.webhook_id, BODY + b" ")).status == 409
    assert (events(), conflicts(), usage()) == (1, 1, 1)
