"""Windows are summed up from their events, exactly, once per change, and by whom the events say."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from metering.consumption.aggregate import Outcome
from metering.consumption.models import OrphanReason
from tests.consumption.make import (
    HOUR,
    LATER,
    LLM,
    MICROSECOND,
    RESOURCE,
    WINDOW,
    aggregated,
    charges,
    dirty,
    learn,
    lines,
    llm,
    receive,
    sample,
    swept,
    window,
)

pytestmark = [pytest.mark.usefixtures("database")]


@pytest.mark.spec("T13")
def test_events_of_a_gateway_are_summed_up_by_key_and_model_and_owed_by_the_keys_organisation() -> None:
    learn(k101="org-1", k102="org-1", k103="org-2")
    receive(
        llm(), llm(prompt_tokens=1, completion_tokens=2, cached_input_tokens=1), llm(model_name="large-1"),
        llm(manager_key_id="102"), llm(manager_key_id="103"), llm(provider="other"),
    )  # fmt: skip
    assert aggregated(swept()) == 1
    found = {(line.manager_key_id, line.applies_to, line.provider): line for line in lines()}
    assert len(found) == 5
    two = found["101", "small-1", "acme"]
    assert (two.events, two.prompt_tokens, two.completion_tokens, two.cached_input_tokens) == (2, 101, 12, 1)
    assert {line.organization_id for line in lines(manager_key_id__in=("101", "102"))} == {"org-1"}
    owed = {
        (c.organization_id, c.applies_to): (c.input_tokens, c.cached_input_tokens, c.output_tokens) for c in charges()
    }
    assert owed == {
        ("org-1", "small-1"): (100 * 3 + 1 - 1, 1, 10 * 3 + 2), ("org-1", "large-1"): (100, 0, 10),
        ("org-2", "small-1"): (100, 0, 10),
    }  # fmt: skip
    row = window()
    assert (row.kind, row.cluster_id, row.window_start, row.window_end) == ("llm_billing", "7", WINDOW, WINDOW + HOUR)
    assert (row.revision, row.events, dirty()) == (1, 6, 0)


@pytest.mark.spec("T13")
def test_what_a_gateway_states_as_organisation_decides_nothing() -> None:
    learn(k101="org-1")
    receive(llm(organization_id="org-thief"), llm(organization_id="org-1"), llm(), llm(manager_key_id="999",
            organization_id="org-thief"), sample(organization_id="org-thief"))  # fmt: skip
    swept()
    assert [(line.organization_id, line.orphan_reason, line.events) for line in lines(kind=LLM)] in (
        [("org-1", None, 3), (None, "unknown_key", 1)], [(None, "unknown_key", 1), ("org-1", None, 3)],
    )  # fmt: skip
    assert [(line.organization_id, line.orphan_reason) for line in lines(kind=RESOURCE)] == [(None, "untrusted")]
    assert {charge.organization_id for charge in charges()} == {"org-1"}


@pytest.mark.spec("T13")
def test_events_of_a_cluster_are_summed_up_by_their_own_organisation_namespace_robot_and_cr() -> None:
    own: dict[str, Any] = {"organization_id": "org-1", "manager_key_id": None}
    receive(
        llm(**own, robot_id="r1", cr_name="c1"), llm(**own, robot_id="r1", cr_name="c1"), llm(**own, robot_id="r2"),
        llm(**{**own, "organization_id": None}), llm(**{**own, "manager_key_id": "101"}),
        mode="per_cluster",
    )  # fmt: skip
    learn(k101="org-of-the-key")
    swept()
    found = {(line.organization_id, line.robot_id, line.cr_name): line.events for line in lines()}
    assert found == {
        ("org-1", "r1", "c1"): 2,
        ("org-1", "r2", None): 1,
        ("org-1", None, None): 1,
        (None, None, None): 1,
    }
    assert [line.orphan_reason for line in lines(organization_id=None)] == [OrphanReason.NO_ORGANIZATION]
    assert [(charge.organization_id, charge.input_tokens) for charge in charges()] == [("org-1", 400)]


@pytest.mark.spec("T13")
def test_samples_are_summed_up_by_namespace_robot_and_cr_without_rounding() -> None:
    parts = [0.1, 0.2, 0.7, 1e15, 0.3]
    receive(*[sample(utilization=part, above_threshold=part > 0.5) for part in parts], sample(robot_id="r1"),
            sample(namespace="ns-2"), sample(resource_type="memory"), mode="per_cluster")  # fmt: skip
    swept()
    (line,) = lines(namespace="ns-1", robot_id=None, applies_to="cpu")
    assert (line.events, line.samples_above_threshold, line.utilization_max) == (5, 2, 1e15)
    assert line.utilization_micros == 1_300_000 + 10**21
    assert line.prompt_tokens is None
    owed = {charge.applies_to: (charge.samples, charge.samples_above_threshold) for charge in charges()}
    assert owed == {"cpu": (7, 2), "memory": (1, 0)}


def test_tokens_from_a_cache_are_a_part_of_the_prompt_and_never_more_than_it() -> None:
    learn(k101="org-1")
    receive(llm(cached_input_tokens=70), llm(model_name="odd", cached_input_tokens=500))
    swept()
    owed = {charge.applies_to: (charge.input_tokens, charge.cached_input_tokens) for charge in charges()}
    assert owed == {"small-1": (30, 70), "odd": (0, 100)}


@pytest.mark.spec("T13")
@pytest.mark.trap("M3")
def test_a_late_event_opens_exactly_its_own_window_again() -> None:
    learn(k101="org-1")
    receive(llm(), llm(WINDOW + HOUR), llm(), cluster="7")
    receive(llm(), cluster="8")
    assert aggregated(swept()) == 3
    assert aggregated(swept()) == 0
    receive(llm(WINDOW + 3 * MICROSECOND))
    assert dirty() == 1
    assert aggregated(swept()) == 1
    assert (window(cluster_id="7", window_start=WINDOW).revision, window(cluster_id="8").revision) == (2, 1)
    generations = {(c.cluster_id, c.window_start): (c.generation, c.input_tokens) for c in charges()}
    assert generations == {("7", WINDOW): (2, 300), ("7", WINDOW + HOUR): (1, 100), ("8", WINDOW): (1, 100)}


def test_the_same_events_again_change_nothing_of_a_line_or_a_charge() -> None:
    learn(k101="org-1")
    event = llm()
    receive(event)
    swept()
    before = [(line.line_id, line.changed_at) for line in lines()], [charge.generation for charge in charges()]
    receive(event)
    assert dirty() == 0
    assert aggregated(swept()) == 0
    receive(llm(prompt_tokens=0, completion_tokens=0))
    assert aggregated(swept()) == 1
    assert [charge.generation for charge in charges()] == before[1]
    assert lines()[0].events == 2


def test_usage_that_costs_nothing_owes_nothing() -> None:
    learn(k101="org-1")
    receive(llm(prompt_tokens=0, completion_tokens=0))
    swept()
    assert (len(lines()), charges()) == (1, [])


@pytest.mark.trap("M5")
@pytest.mark.parametrize(
    ("over", "expected"), [(HOUR - MICROSECOND, 0), (HOUR, 1)], ids=["a microsecond early", "at its end"]
)
def test_a_window_is_summed_up_when_it_is_over_and_not_before(over: timedelta, expected: int, settings: Any) -> None:
    settings.CONSUMPTION_CLOSE_AFTER = 0
    receive(llm(WINDOW + MICROSECOND))
    assert aggregated(swept(WINDOW + over)) == expected


def test_a_window_that_is_not_over_waits_as_long_as_is_set() -> None:
    receive(llm())
    assert aggregated(swept(WINDOW + HOUR)) == 0
    assert aggregated(swept(LATER)) == 1


@pytest.mark.trap("D3")
def test_a_window_that_fails_keeps_no_other_from_its_turn() -> None:
    receive(llm(), cluster="7")
    receive(llm(), cluster="8")
    swept()
    receive(llm(), cluster="7")
    receive(llm(), cluster="8")
    with connections["telemetry.schema"].cursor() as cursor:
        cursor.execute("ALTER TABLE consumption_lines ADD CONSTRAINT poison CHECK (cluster_id <> '7' OR events < 2)")
    try:
        found = swept().windows
        assert (found[Outcome.FAILED], found[Outcome.AGGREGATED]) == (1, 1)
        assert dirty() == 1
    finally:
        with connections["telemetry.schema"].cursor() as cursor:
            cursor.execute("ALTER TABLE consumption_lines DROP CONSTRAINT poison")
    assert aggregated(swept()) == 1
