"""Bodies before anything is read from them: gzip under a bound, the cut into records, OTLP/JSON."""

import base64
import gzip
import json
import os
import tracemalloc
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from metering.otlp import split
from metering.otlp.decode import Summary, decode
from metering.otlp.inflate import MAX_MEMBERS, inflate
from metering.otlp.json_form import to_protobuf
from metering.otlp.split import records
from metering.otlp.wire import Malformed, TooLarge
from tests.otlp.make import body, llm, request, rules, sample, wrapped

MIB = 2**20


@pytest.mark.trap("T3")
@pytest.mark.parametrize("size", [0, 1, 65_536, 300_000, 5 * MIB])
def test_gzip_gives_back_what_went_in_also_in_several_members(size: int) -> None:
    for data in (os.urandom(size), b"a" * size):
        packed = gzip.compress(data)
        assert inflate(packed, most=6 * MIB) == data
        assert inflate(packed + gzip.compress(b"") + gzip.compress(b"end"), most=6 * MIB) == data + b"end"


@pytest.mark.trap("T3")
def test_a_small_body_that_inflates_to_a_gigabyte_is_refused_with_flat_memory() -> None:
    bomb = gzip.compress(gzip.compress(bytes(2**26)) * 16)
    inner = gzip.decompress(bomb)
    assert len(bomb) < 40_000
    tracemalloc.start()
    with pytest.raises(TooLarge):
        inflate(inner, most=2 * MIB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * MIB


@pytest.mark.trap("T3")
def test_the_bound_is_kept_to_the_byte() -> None:
    assert len(inflate(gzip.compress(bytes(MIB)), most=MIB)) == MIB
    with pytest.raises(TooLarge):
        inflate(gzip.compress(bytes(MIB + 1)), most=MIB)


@pytest.mark.trap("T3")
def test_what_is_cut_off_damaged_or_no_gzip_is_malformed() -> None:
    packed = gzip.compress(os.urandom(100_000))
    for broken in (
        b"", b"\x1f", b"hello", packed[:9], packed[:-1], packed[:-8], packed[: len(packed) // 2], packed + b"junk",
        packed[:-6] + bytes([packed[-6] ^ 1]) + packed[-5:], packed[:-2] + b"\0\0", packed + packed[:20],
    ):  # fmt: skip
        with pytest.raises(Malformed):
            inflate(broken, most=MIB)


@pytest.mark.trap("T3")
def test_a_body_of_endless_empty_members_is_refused() -> None:
    with pytest.raises(TooLarge):
        inflate(gzip.compress(b"") * (MAX_MEMBERS + 1), most=MIB)


def messages(encoded: bytes) -> list[LogRecord]:
    return [LogRecord.FromString(one) for _, one in records(encoded)]


def test_a_request_is_cut_into_its_records_with_their_resources() -> None:
    made = request([llm("a"), sample("b")], resource={"r": 1})
    made.resource_logs.add()
    second = made.resource_logs.add()
    second.resource.attributes.add(key="r", value=made.resource_logs[0].resource.attributes[0].value)
    second.scope_logs.add().log_records.append(llm("c"))
    second.scope_logs.add(schema_url="s").log_records.append(llm("d"))
    expected = [
        (logs.resource, one) for logs in made.resource_logs for scope in logs.scope_logs for one in scope.log_records
    ]
    found = [(resource.message, LogRecord.FromString(one)) for resource, one in records(made.SerializeToString())]
    assert found == expected
    assert list(records(b"")) == []


def test_a_resource_that_comes_late_or_in_pieces_is_merged_as_protobuf_says() -> None:
    first = request([llm()], resource={"a": 1}).resource_logs[0].SerializeToString()
    late = request([], resource={"b": 2}).resource_logs[0].SerializeToString()
    whole = ExportLogsServiceRequest()
    encoded = wrapped(1, first + late)
    whole.MergeFromString(encoded)
    ((resource, _),) = records(encoded)
    assert resource.message == whole.resource_logs[0].resource
    assert {pair.key for pair in resource.message.attributes} == {"a", "b"}


def test_unknown_fields_of_every_wire_type_are_skipped() -> None:
    good = body([llm("a")])
    extra = b"\x78\x96\x01" + b"\x79" + bytes(8) + b"\x7a\x03abc" + b"\x7d" + bytes(4) + b"\xc2\xf3\x1f\x00"
    assert [one.attributes for one in messages(extra + good + extra)] == [one.attributes for one in messages(good)]


@settings(max_examples=400, deadline=None)
@given(cut=st.integers(0, 1200), flip=st.integers(0, 1200), bit=st.integers(0, 7), insert=st.binary(max_size=4))
def test_whatever_is_damaged_is_read_as_protobuf_reads_it_or_is_malformed(
    cut: int, flip: int, bit: int, insert: bytes
) -> None:
    damaged = bytearray(body([llm("a"), sample("b")], resource={"service.name": "x", "n": 3}))
    damaged[flip % len(damaged)] ^= 1 << bit
    damaged[cut % len(damaged) : cut % len(damaged)] = insert
    encoded = bytes(damaged[: 1 + max(cut, flip)])
    try:
        ours = messages(encoded)
    except (Malformed, ValueError):
        return
    except Exception as error:
        assert type(error).__name__ == "DecodeError", "of a record or a resource; the decoder translates it"
        return
    try:
        theirs = ExportLogsServiceRequest.FromString(encoded)
    except Exception:
        return  # scopes and unknown fields are not looked into
    assert ours == [one for logs in theirs.resource_logs for scope in logs.scope_logs for one in scope.log_records]


@pytest.mark.parametrize(
    "broken",
    [b"\x0a", b"\x0a\x05ab", b"\x08\x01", b"\x0b\x0c", b"\x02\x01a", b"\xff" * 11, b"\x0a\x02\x12\x05", b"\x79\0"],
)
def test_what_is_no_request_is_malformed(broken: bytes) -> None:
    with pytest.raises(Malformed):
        list(decode(broken, rules=rules(), summary=Summary()))


def test_a_record_or_resource_that_is_no_protobuf_is_malformed() -> None:
    for broken in (b"\x0a\x06\x12\x04\x12\x02\x0d\x01", b"\x0a\x04\x0a\x02\x0a\x05\x12\x04\x12\x02\x12\x00"):
        with pytest.raises(Malformed):
            list(decode(broken, rules=rules(), summary=Summary()))


def test_a_request_has_a_bound_on_records_and_on_the_size_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "MAX_RECORDS", 3)
    assert len(list(records(body([llm()] * 3)))) == 3
    with pytest.raises(TooLarge):
        list(records(body([llm()] * 4)))
    for large in (body([llm(x="y" * 5 * MIB)]), body([llm()], resource={"x": "y" * 5 * MIB})):
        with pytest.raises(TooLarge):
            list(records(large))


def as_json(made: ExportLogsServiceRequest) -> dict[str, Any]:
    """OTLP/JSON as the JavaScript exporter writes it: hexadecimal ids."""
    document = MessageToDict(made)
    for logs in document["resourceLogs"]:
        for scope in logs["scopeLogs"]:
            for one in scope["logRecords"]:
                for name in ("traceId", "spanId"):
                    if name in one:
                        one[name] = base64.b64decode(one[name]).hex()
    return document


def test_otlp_json_becomes_the_same_protobuf_without_the_ids() -> None:
    made = request([llm("a", cached_input_tokens=2**40, note="ü"), sample("b")], resource={"x": [1, {"y": True}]})
    expected = made.SerializeToString(deterministic=True)
    for one in made.resource_logs[0].scope_logs[0].log_records:
        one.trace_id, one.span_id = bytes(range(16)), bytes(range(8))
    document = as_json(made)
    found = ExportLogsServiceRequest.FromString(to_protobuf(json.dumps(document).encode()))
    assert found.SerializeToString(deterministic=True) == expected


def test_a_64_bit_integer_may_be_a_string_or_a_number_and_unknown_names_are_ignored() -> None:
    def events(number: Any) -> list[LogRecord]:
        attributes = [{"key": "prompt_tokens", "value": {"intValue": number}}]
        one = {"timeUnixNano": number, "attributes": attributes, "later": {"x": 1}}
        document = {"resourceLogs": [{"scopeLogs": [{"logRecords": [one]}], "more": []}]}
        return messages(to_protobuf(json.dumps(document).encode()))

    assert events(2**53 - 1) == events(str(2**53 - 1))
    assert events("12")[0].attributes[0].value.int_value == 12


@pytest.mark.parametrize(
    "broken",
    [
        b"", b"[]", b"7", b"{", b'{"resourceLogs": 7}', b'{"resourceLogs": [7]}', b'{"a":' * 3000, b'{"x": "\xff"}',
        b'{"resourceLogs":[{"resource":{"attributes":[{"key":"\\ud800"}]}}]}',
        b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"x"}]}]}]}',
    ],
)  # fmt: skip
def test_what_is_no_otlp_json_is_malformed(broken: bytes) -> None:
    with pytest.raises(Malformed):
        to_protobuf(broken)
