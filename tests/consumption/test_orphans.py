"""Usage of a key that nobody knows is isolated, charged to nobody, and released when the key is learnt."""

import pytest
from django.db import connections

from metering.consumption import release_orphans as releasing
from metering.consumption.aggregate import aggregate_due
from metering.consumption.models import ConsumptionLine
from tests.consumption.make import (
    HOUR,
    LATER,
    WINDOW,
    aggregated,
    charges,
    dirty,
    learn,
    lines,
    llm,
    receive,
    swept,
    window,
)

pytestmark = [pytest.mark.usefixtures("database")]


@pytest.mark.spec("T13")
def test_an_orphan_keeps_its_amounts_apart_and_is_charged_to_nobody() -> None:
    learn(k101="org-1")
    receive(llm(), llm(manager_key_id="404", prompt_tokens=7, completion_tokens=3, cached_input_tokens=2))
    swept()
    (orphan,) = lines(organization_id=None)
    amounts = (orphan.events, orphan.prompt_tokens, orphan.completion_tokens, orphan.cached_input_tokens)
    assert (orphan.manager_key_id, orphan.orphan_reason, amounts) == ("404", "unknown_key", (1, 7, 3, 2))
    assert [(charge.organization_id, charge.input_tokens) for charge in charges()] == [("org-1", 100)]


@pytest.mark.spec("T13")
def test_an_orphan_is_released_into_every_window_of_its_key_as_soon_as_the_key_is_learnt() -> None:
    receive(llm(), llm(WINDOW + HOUR), llm(manager_key_id="404"))
    swept()
    assert (swept().released, charges()) == (0, [])
    learn(k101="org-1")
    done = swept()
    assert (done.released, aggregated(done)) == (2, 0)
    assert [line.manager_key_id for line in lines(organization_id=None)] == ["404"]
    assert all(line.released_at and line.organization_id == "org-1" for line in lines(manager_key_id="101"))
    assert [(c.organization_id, c.window_start, c.input_tokens) for c in charges()] == [
        ("org-1", WINDOW, 100), ("org-1", WINDOW + HOUR, 100),
    ]  # fmt: skip
    assert swept().released == 0


def test_a_released_orphan_joins_what_its_organisation_owes_already() -> None:
    learn(k101="org-1")
    receive(llm(), llm(manager_key_id="102"))
    swept()
    learn(k102="org-1")
    swept()
    assert [(charge.generation, charge.input_tokens) for charge in charges()] == [(2, 200)]


def test_an_orphan_can_be_released_when_its_events_are_no_longer_kept() -> None:
    receive(llm())
    swept()
    with connections["telemetry.schema"].cursor() as cursor:
        cursor.execute("INSERT INTO telemetry_retention VALUES ('llm_billing', %s)", [WINDOW + 20 * HOUR])
    learn(k101="org-1")
    assert swept().released == 1
    assert [charge.input_tokens for charge in charges()] == [100]


def test_a_window_whose_events_are_no_longer_kept_is_left_as_it_was_summed_up() -> None:
    learn(k101="org-1")
    receive(llm())
    swept()
    with connections["telemetry.schema"].cursor() as cursor:
        cursor.execute("INSERT INTO telemetry_retention VALUES ('llm_billing', %s)", [WINDOW + 20 * HOUR])
        cursor.execute("UPDATE consumption_windows_dirty SET marked_generation = marked_generation + 1")
    swept()
    assert (dirty(), window().revision, lines()[0].events) == (0, 1, 1)


def test_a_key_that_is_learnt_before_its_window_is_summed_up_again_is_released_by_that() -> None:
    receive(llm())
    swept()
    learn(k101="org-1")
    receive(llm())
    aggregate_due(at=LATER, go_on=lambda: True)
    (line,) = lines()
    assert (line.organization_id, line.orphan_reason, line.events, line.released_at is None) == (
        "org-1",
        None,
        2,
        False,
    )


@pytest.mark.trap("D3")
def test_keys_that_stay_unknown_do_not_keep_later_ones_from_being_released(monkeypatch: pytest.MonkeyPatch) -> None:
    receive(*[llm(manager_key_id=str(key)) for key in range(201, 206)])
    swept()
    monkeypatch.setattr(releasing, "PAGE", 2)
    learn(k205="org-1")
    assert swept().released == 1
    assert ConsumptionLine.objects.filter(orphan_reason="unknown_key").count() == 4


def test_a_key_of_any_text_that_no_manager_ever_gave_out_is_an_orphan() -> None:
    receive(llm(manager_key_id="not a number"), llm(manager_key_id="0101"), llm(manager_key_id="é" * 255))
    learn(k101="org-1")
    assert aggregated(swept()) == 1
    assert {line.orphan_reason for line in lines()} == {"unknown_key"}
    assert swept().released == 0
