"""Records to rows: which values each field takes in which encoding, and the field for which a record is dropped."""

import math
from datetime import timedelta
from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from metering.otlp.fields import COLUMNS, MAX_COUNT, MAX_LEVEL, MAX_TEXT, PRECEDENCE, Field, Kind
from metering.otlp.times import micros
from tests.otlp.make import ABSENT, LLM, NOON, RESOURCE, llm, nanos, record, rules, sample
from tests.otlp.reading import fate, read

NUL = "a\x00b"
LONGEST = "x" * MAX_TEXT
WIDE = "\U0001f980" * MAX_TEXT


def test_an_llm_event_is_read_field_by_field() -> None:
    pod: dict[str, Any] = {"k8s.pod.uid": "u"}
    given = llm("e-1", cached_input_tokens=7, organization_id="o", robot_id="r", cr_name="c", **pod)
    assert fate(given) == {
        "event_type": "llm_billing",
        "event_id": "e-1",
        "occurred_at": "2026-03-04T12:00:00.123456Z",
        "tenant_name": "team-a",
        "namespace": "team-a",
        "manager_key_id": "77",
        "model_name": "m-large",
        "provider": "p",
        "organization_id": "o",
        "robot_id": "r",
        "cr_name": "c",
        "k8s_pod_uid": "u",
        "prompt_tokens": 1200,
        "completion_tokens": 34,
        "cached_input_tokens": 7,
    }


def test_a_resource_event_is_read_field_by_field() -> None:
    assert fate(sample("e-2", pod_name="p-0", container_name="c", cr_name="x")) == {
        "event_type": "resource_utilization",
        "event_id": "e-2",
        "occurred_at": "2026-03-04T12:00:00.123456Z",
        "tenant_name": "team-a",
        "namespace": "team-a",
        "resource_type": "cpu",
        "organization_id": None,
        "robot_id": None,
        "cr_name": "x",
        "pod_name": "p-0",
        "container_name": "c",
        "utilization": 0.75,
        "above_threshold": True,
    }


@pytest.mark.spec("T5")
@pytest.mark.parametrize("event_type", [ABSENT, "", None, "llm_billing"])
def test_a_record_without_an_event_type_is_an_llm_event(event_type: Any) -> None:
    assert isinstance(fate(llm(event_type=event_type)), dict)


@pytest.mark.spec("T5", "T7")
@pytest.mark.parametrize("event_type", ["LLM_BILLING", "llm_billing ", "metrics", 1, True, ["llm_billing"], NUL])
def test_an_unknown_event_type_drops_the_record(event_type: Any) -> None:
    assert fate(llm(event_type=event_type)) == "event_type"


REQUIRED = [
    (make, column.field.value) for make, kind in ((llm, Kind.LLM_BILLING), (sample, Kind.RESOURCE_UTILIZATION))
    for column in COLUMNS[kind] if column.required
]  # fmt: skip


@pytest.mark.spec("T5", "T7")
@pytest.mark.parametrize("missing", [ABSENT, "", None])
@pytest.mark.parametrize(("make", "name"), REQUIRED)
def test_a_missing_required_field_drops_the_record_under_its_bare_name(make: Any, name: str, missing: Any) -> None:
    attributes = {**(LLM if make is llm else RESOURCE), "event_id": "e", name: missing}
    assert fate(record(attributes)) == name


@pytest.mark.spec("T5")
def test_an_empty_optional_field_is_null() -> None:
    empty: dict[str, Any] = dict.fromkeys(("organization_id", "robot_id", "cr_name", "k8s.pod.uid"), "")
    found = fate(llm(**empty, cached_input_tokens=""))
    assert isinstance(found, dict)
    assert [found[name] for name in ("organization_id", "robot_id", "cr_name", "k8s_pod_uid")] == [None] * 4
    assert found["cached_input_tokens"] is None


@pytest.mark.spec("T8")
def test_only_a_gateway_needs_the_managed_key() -> None:
    without = llm(manager_key_id=ABSENT)
    assert fate(without, held_to=rules(gateway=True)) == "manager_key_id"
    found = fate(without, held_to=rules(gateway=False))
    assert isinstance(found, dict)
    assert found["manager_key_id"] is None
    assert isinstance(fate(sample(), held_to=rules(gateway=True)), dict)


@pytest.mark.spec("T7")
def test_of_several_faults_the_first_in_the_order_of_the_contract_is_the_reason() -> None:
    assert [field.value for field in PRECEDENCE[:6]] == [
        "event_type", "event_id", "tenant_name", "namespace", "occurred_at", "manager_key_id",
    ]  # fmt: skip
    everything: dict[str, Any] = dict.fromkeys((name for name in LLM if name != "event_type"), ABSENT)
    assert fate(record({"provider": "p"}, at=None)) == "event_id"
    assert fate(llm("e", at=None, **everything)) == "tenant_name"
    assert fate(llm("e", at=None, **{**everything, "tenant_name": "t", "namespace": "n"})) == "occurred_at"
    assert fate(llm("e", **{**everything, "tenant_name": "t", "namespace": "n"})) == "manager_key_id"


ACCEPTED_COUNTS: list[tuple[Any, int]] = [
    (0, 0), (1, 1), (MAX_COUNT, MAX_COUNT), (0.0, 0), (-0.0, 0), (12.0, 12), (float(2**53 - 1), 2**53 - 1),
    ("0", 0), ("0012", 12), (str(MAX_COUNT), MAX_COUNT),
]  # fmt: skip
REFUSED_COUNTS: list[Any] = [
    -1, MAX_COUNT + 1, 2**63 - 1, -(2**63), 0.5, -1.0, 1e308, float(2**53), math.nan, math.inf, -math.inf,
    "-1", "+1", "1.0", "1e3", "12x", " 12", "\u0663", str(2**63 - 1), "9" * 40, NUL, True, False, b"12", [12],
    {"v": 12}, [], {},
]  # fmt: skip


@pytest.mark.trap("T6")
@pytest.mark.parametrize(("given", "stored"), ACCEPTED_COUNTS)
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens", "cached_input_tokens"])
def test_a_count_is_taken_in_every_encoding_of_a_whole_number(name: str, given: Any, stored: int) -> None:
    found = fate(llm(**{name: given}))
    assert isinstance(found, dict)
    assert found[name] == stored
    assert type(found[name]) is int


@pytest.mark.trap("T6")
@pytest.mark.parametrize("given", REFUSED_COUNTS)
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens", "cached_input_tokens"])
def test_what_is_no_count_drops_the_record(name: str, given: Any) -> None:
    assert fate(llm(**{name: given})) == name


ACCEPTED_LEVELS: list[tuple[Any, float]] = [
    (0.0, 0.0), (0.1, 0.1), (5e-324, 5e-324), (MAX_LEVEL, MAX_LEVEL), (0, 0.0), (3, 3.0), (10**15, 1e15),
    ("0", 0.0), ("0.25", 0.25), ("1e-3", 0.001), ("12.5E1", 125.0), (-0.0, 0.0),
]  # fmt: skip
REFUSED_LEVELS: list[Any] = [
    -0.1, -5e-324, 1e308, math.nan, math.inf, -math.inf, -1, 2**63 - 1, "NaN", "Infinity", "-1", "1,5", ".5", "0x1",
    "1e99", "1_0", NUL, True, b"1", [0.5], {"v": 0.5},
]  # fmt: skip


@pytest.mark.trap("T6")
@pytest.mark.parametrize(("given", "stored"), ACCEPTED_LEVELS)
def test_a_utilization_is_taken_in_every_encoding_of_a_number(given: Any, stored: float) -> None:
    found = fate(sample(utilization=given))
    assert isinstance(found, dict)
    assert found["utilization"] == stored
    assert math.copysign(1, found["utilization"]) == 1


@pytest.mark.trap("T6")
@pytest.mark.parametrize("given", REFUSED_LEVELS)
def test_what_is_no_utilization_drops_the_record(given: Any) -> None:
    assert fate(sample(utilization=given)) == "utilization"


@pytest.mark.trap("T6")
@pytest.mark.parametrize(("given", "stored"), [(True, True), (False, False), ("true", True), ("false", False)])
def test_a_flag_is_a_boolean_or_its_word(given: Any, stored: bool) -> None:
    found = fate(sample(above_threshold=given))
    assert isinstance(found, dict)
    assert found["above_threshold"] is stored


@pytest.mark.trap("T6")
@pytest.mark.parametrize("given", [0, 1, 1.0, "True", "yes", "1", b"true", [True]])
def test_what_is_no_flag_drops_the_record(given: Any) -> None:
    assert fate(sample(above_threshold=given)) == "above_threshold"


@pytest.mark.trap("T6")
@pytest.mark.parametrize("name", ["manager_key_id", "organization_id", "robot_id"])
@pytest.mark.parametrize(("given", "stored"), [(7, "7"), (0, "0"), (2**63 - 1, str(2**63 - 1)), ("0x7", "0x7")])
def test_an_identifier_may_be_a_whole_number(name: str, given: Any, stored: str) -> None:
    found = fate(llm(**{name: given}))
    assert isinstance(found, dict)
    assert found[name] == stored


TEXTS = ["event_id", "tenant_name", "namespace", "model_name", "provider", "manager_key_id", "organization_id",
         "robot_id", "cr_name", "k8s.pod.uid"]  # fmt: skip


@pytest.mark.trap("T6", "T7")
@pytest.mark.parametrize(
    "given", [NUL, "\x00", "x" * (MAX_TEXT + 1), True, 0.5, b"x", ["x"], {"x": "y"}, {"x": NUL}, -1]
)
@pytest.mark.parametrize("name", TEXTS)
def test_what_is_no_text_drops_the_record_under_that_field(name: str, given: Any) -> None:
    assert fate(record({**LLM, "event_id": "e", name: given})) == name


@pytest.mark.parametrize("given", [LONGEST, WIDE, " ", "\n", "é\u0301", '"\\', "{}", "\ufeff"])
@pytest.mark.parametrize("name", TEXTS)
def test_any_other_text_is_kept_as_it_is(name: str, given: str) -> None:
    found = fate(record({**LLM, "event_id": "e", name: given}))
    assert isinstance(found, dict)
    assert found[name.replace(".", "_")] == given


@pytest.mark.trap("T6", "T7")
@pytest.mark.parametrize(
    "given",
    [NUL, {"a": {NUL: [NUL, math.nan]}}, b"\xff\x00", -1, 1e308, math.nan, [None, None], AnyValue(), "x" * 10_000],
)
@pytest.mark.parametrize("key", ["http.url", "", NUL, "event_id\x00", "Event_Id", "resource_type"])
def test_attributes_that_are_not_stored_pass_whatever_they_hold(key: str, given: Any) -> None:
    assert isinstance(fate(llm(**{key: given})), dict)


@pytest.mark.trap("T8")
@pytest.mark.parametrize("name", [*LLM, "event_id", "cached_input_tokens", "k8s.pod.uid"])
def test_a_stored_attribute_given_twice_says_two_things_even_when_they_are_equal(name: str) -> None:
    plain = {**LLM, "event_id": "e", "cached_input_tokens": 1, "k8s.pod.uid": "u"}
    assert fate(record([*plain.items(), (name, plain[name])])) == name


@pytest.mark.trap("T8")
def test_other_attributes_may_be_given_twice() -> None:
    plain = {**LLM, "event_id": "e"}
    assert isinstance(
        fate(record([*plain.items(), ("x", 1), ("x", 2), ("cluster_id", "1"), ("cluster_id", "2")])), dict
    )


@pytest.mark.trap("T8")
def test_a_record_wins_over_its_resource_and_their_disagreement_is_counted() -> None:
    events, summary = read(
        [llm(namespace="own"), llm(namespace="own", provider="other"), llm(namespace="shared", provider=ABSENT)],
        resource={"namespace": "shared", "provider": "p", "organization_id": 7, "service.name": "x"},
    )
    assert [(event["namespace"], event["provider"], event["organization_id"]) for event in events] == [
        ("own", "p", "7"), ("own", "other", "7"), ("shared", "p", "7"),
    ]  # fmt: skip
    assert summary.disagreements.counts == {Field.NAMESPACE: 2, Field.PROVIDER: 1}
    assert summary.rejected == 0


@pytest.mark.trap("T8")
def test_an_empty_string_in_the_record_says_nothing_so_the_resource_holds() -> None:
    events, summary = read(
        [llm(organization_id="", tenant_name="")], resource={"organization_id": "7", "tenant_name": "t"}
    )
    assert (events[0]["organization_id"], events[0]["tenant_name"]) == ("7", "t")
    assert summary.disagreements.counts == {}


@pytest.mark.trap("T8")
def test_a_resource_at_fault_matters_only_where_it_is_needed() -> None:
    bad = [("namespace", 1.5), ("provider", "a"), ("provider", "b")]
    events, summary = read([llm()], resource=bad)
    assert len(events) == 1
    assert summary.disagreements.counts == {Field.NAMESPACE: 1, Field.PROVIDER: 1}
    assert fate(llm(namespace=ABSENT), resource=bad) == "namespace"
    assert fate(llm(provider=ABSENT), resource=bad) == "provider"


def test_the_resource_may_give_every_field() -> None:
    events, _ = read([record({})], resource={**LLM, "event_id": "e", "prompt_tokens": "5"})
    assert (events[0]["event_id"], events[0]["prompt_tokens"], events[0]["manager_key_id"]) == ("e", 5, "77")
    events, _ = read([record({"event_id": "s"})], resource=RESOURCE)
    assert events[0]["event_type"] == "resource_utilization"


@pytest.mark.trap("T9")
@pytest.mark.spec("T6")
def test_only_the_two_times_of_a_record_say_when_it_occurred() -> None:
    assert fate(llm(at=None)) == "occurred_at"
    assert fate(sample(at=None)) == "occurred_at"
    observed = fate(llm(at=None, observed=nanos(NOON)))
    assert isinstance(observed, dict)
    assert observed["occurred_at"] == "2026-03-04T12:00:00.123456Z"
    both = fate(llm(at=NOON, observed=nanos(NOON + timedelta(days=1))))
    assert isinstance(both, dict)
    assert both["occurred_at"] == "2026-03-04T12:00:00.123456Z"


@pytest.mark.trap("T9")
def test_a_time_is_cut_to_microseconds_not_rounded() -> None:
    found = {str(fate(llm("e", at=nanos(NOON) + extra))) for extra in (0, 1, 500, 999)}
    assert len(found) == 1
    assert "2026-03-04T12:00:00.123456Z" in found.pop()


@pytest.mark.trap("T9")
def test_a_time_outside_of_what_is_kept_or_can_have_happened_drops_the_record() -> None:
    bounds = rules(earliest=micros(NOON), latest=micros(NOON + timedelta(hours=1)))
    micro, hour = timedelta(microseconds=1), timedelta(hours=1)
    for at, kept in (
        (NOON - micro, False), (NOON, True), (NOON + hour, True), (NOON + hour + micro, False),
        (2**63, False), (2**64 - 1, False), (1, False),
    ):  # fmt: skip
        for make in (llm, sample):
            assert isinstance(fate(make(at=at), held_to=bounds), dict) is kept, at


@pytest.mark.trap("T5")
def test_one_bad_record_of_each_kind_costs_only_itself() -> None:
    bad = [llm(at=None), llm(prompt_tokens=-1), llm(NUL), sample(utilization=math.nan), record({}),
           llm(event_type="x"), llm(manager_key_id=ABSENT), sample(tenant_name=""),
           llm(provider={"a": NUL})]  # fmt: skip
    good = [llm(f"good-{number}") for number in range(len(bad))]
    events, summary = read([item for pair in zip(good, bad, strict=True) for item in pair])
    assert [event["event_id"] for event in events] == [f"good-{number}" for number in range(len(good))]
    assert len(events) + summary.rejected == len(good) + len(bad)
    assert sum(summary.accepted.values()) == len(good)
