"""The fast way through plain records is the slow way, record by record; and plain records do take it."""

from typing import Any

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import settings
from hypothesis import strategies as st
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from metering.otlp.fields import MAX_COUNT, Kind
from metering.otlp.form import MAX_FORMS, Forms
from metering.otlp.read_record import STORED, Disagreements, Dropped, given, read_record
from metering.otlp.times import micros
from tests.otlp.make import ABSENT, LLM, NOON, RESOURCE, llm, nanos, pairs, record, rules, sample

KEYS = [*sorted(STORED), "cluster_id", "service.name", "event_id\x00"]
NUMBERS = st.sampled_from([0, 1, -1, MAX_COUNT, MAX_COUNT + 1, 2**63 - 1])
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(["llm_billing", "resource_utilization", "", "a", "7", "x" * 200, "x" * 256, "a\x00b", "true"]),
    NUMBERS,
    st.floats(),
    st.booleans(),
    st.sampled_from([b"", None]),
    st.just([]),
)
PLAIN: st.SearchStrategy[dict[str, Any]] = st.sampled_from([LLM, RESOURCE, {**LLM, "event_type": ABSENT}])
TIMES = st.sampled_from([0, 1, 999, 1000, nanos(NOON), nanos(NOON) + 1, 2**64 - 1])


def slowly(one: LogRecord, resource: Any, held_to: Any) -> tuple[Kind, Any] | None:
    """What the slow way makes of it, None where it drops the record or counts a disagreement."""
    counted = Disagreements()
    try:
        found = read_record(one, resource=resource, rules=held_to, disagreements=counted)
    except Dropped:
        return None
    return None if counted.counts else found


@settings(max_examples=1500, deadline=None)
@hypothesis_given(
    plain=PLAIN,
    changes=st.lists(st.tuples(st.sampled_from(KEYS), VALUES), max_size=4),
    twice=st.lists(st.tuples(st.sampled_from(KEYS), VALUES), max_size=1),
    around=st.lists(st.tuples(st.sampled_from(KEYS), VALUES), max_size=3),
    when=st.tuples(TIMES, TIMES, st.booleans()),
)
def test_a_form_gives_what_reading_field_by_field_gives(
    plain: Any, changes: Any, twice: Any, around: Any, when: Any
) -> None:
    *times, gateway = when
    one = record([*{"event_id": "e", **plain, **dict(changes)}.items(), *twice], at=times[0], observed=times[1])
    resource = given(pairs(around))
    held_to = rules(gateway=gateway, earliest=micros(NOON), latest=micros(NOON))
    forms = Forms(resource=resource, rules=held_to)
    for _ in range(2):
        found = forms.read(one)
        if found is not None:
            slow = slowly(one, resource, held_to)
            assert found == slow
            assert slow is not None
            assert [type(item) for item in found[1]] == [type(item) for item in slow[1]]


@pytest.mark.parametrize(
    "plain",
    [
        llm(),
        llm(cached_input_tokens=0, prompt_tokens=0),
        llm(event_type=ABSENT, organization_id="o", other="x"),
        sample(utilization=0.0, above_threshold=False),
        sample(pod_name="p", container_name="c"),
    ],
)
def test_plain_records_take_the_fast_way(plain: LogRecord) -> None:
    for resource in ({}, {"service.name": "s"}, {"namespace": "team-a", "cr_name": "c"}):
        forms = Forms(resource=given(pairs(resource)), rules=rules())
        found = forms.read(plain)
        assert found == slowly(plain, given(pairs(resource)), rules())
        assert found is not None


def test_an_emitter_without_two_records_alike_fills_no_memory() -> None:
    forms = Forms(resource=given([]), rules=rules())
    for number in range(MAX_FORMS * 2):
        forms.read(llm(**{f"key-{number}": number}))
    assert len(forms._layouts) == MAX_FORMS
