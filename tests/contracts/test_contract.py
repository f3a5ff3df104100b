"""The wire form of a contract is unique, closed and flat; what differs in any way is refused."""

import copy
import datetime
import json
import pickle
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from outbox.contracts.ack import OperationsProjectionApplied
from outbox.contracts.canonical import decode
from outbox.contracts.contract import (
    ContentReference,
    Contract,
    ContractViolation,
    Identifier,
    Timestamp,
    instant,
    timestamp,
)
from outbox.contracts.fields import Count
from outbox.contracts.safe_types import excludes_nul, unsafe_parts
from tests.contracts.documents import DOCUMENTS, TEXT, damaged, offending
from tests.contracts.shapes import AT, Hashed, Left, Line, Loose, Note, Right, note, reference

pytestmark = pytest.mark.spec("O6", "O20")


def changed(data: bytes, **fields: Any) -> bytes:
    """The same document with fields set, or left out where the value is `...`."""
    document = json.loads(data) | fields
    left = {name: value for name, value in document.items() if value is not ...}
    return json.dumps(left, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def test_a_reference_is_four_flat_fields_on_the_wire_and_one_value_in_python() -> None:
    written = note()
    assert {key: value for key, value in written.wire().items() if key.startswith("page")} == {
        "pageRef": "thing:c",
        "pageSchemaVersion": "1",
        "pageDigestAlgorithmVersion": "jcs-sha256-v1",
        "pageDigest": "c" * 64,
    }
    assert written.page == reference("c")
    assert written.reference.ref == "field-note:1"
    assert isinstance(written.branch, Left)
    assert written.branch.evidence == reference("b")


def test_what_was_written_is_read_back_as_the_same_object_and_the_same_bytes() -> None:
    written = note(supersedes="field-note:0")
    read = Note.parse(written.canonical())
    assert read == written
    assert read.canonical() == written.canonical() == rfc8785.dumps(written.wire())
    assert Note.from_wire(written.wire()) == written


@given(TEXT.filter(bool), st.integers(0, 2**53 - 1), st.booleans(), st.none() | st.just("x:1"))
def test_every_contract_of_safe_types_writes_the_bytes_of_rfc_8785(
    words: str, count: int, final: bool, supersedes: str | None
) -> None:
    written = note(words=words, lines=(Line(name="a", count=count),), final=final, supersedes=supersedes)
    assert written.canonical() == rfc8785.dumps(written.wire())
    assert Note.parse(written.canonical()) == written


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"unknown": 1}, "unknown"),
        ({"author": None}, "author"),
        ({"author": ...}, "author"),
        ({"supersedes": None}, "never null"),
        ({"author": 7}, "author"),
        ({"author": "two words"}, "author"),
        ({"author": ""}, "author"),
        ({"final": 1}, "final"),
        ({"final": "true"}, "final"),
        ({"lines": [{"name": "a", "count": 1.0}]}, "lines.0.count"),
        ({"lines": [{"name": "a", "count": -1}]}, "lines.0.count"),
        ({"lines": [{"name": "a", "count": True}]}, "lines.0.count"),
        ({"lines": {"name": "a", "count": 1}}, "lines"),
        ({"branch": {"kind": "middle"}}, "branch"),
        ({"branch": {}}, "branch"),
        ({"branch": {"kind": "right", "evidenceRef": "thing:b"}}, "branch"),
        ({"pageDigest": ...}, "pageDigest"),
        ({"page": {"ref": "thing:c"}}, "page"),
        ({"pageDigest": "C" * 64}, "pageDigest"),
        ({"pageDigestAlgorithmVersion": "sha256"}, "pageDigestAlgorithmVersion"),
        ({"writtenAt": "2026-02-30T10:15:30.000001Z"}, "writtenAt"),
        ({"writtenAt": "2026-09-24T10:15:30.001Z"}, "writtenAt"),
        ({"writtenAt": "2026-09-24T10:15:30.000001+00:00"}, "writtenAt"),
        ({"writtenAt": "2026-09-24T24:15:30.000001Z"}, "writtenAt"),
        ({"writtenAt": "0000-09-24T10:15:30.000001Z"}, "writtenAt"),
    ],
)
def test_a_document_that_breaks_its_contract_is_refused_naming_the_field(fields: dict[str, Any], where: str) -> None:
    with pytest.raises(ContractViolation, match=where):
        Note.parse(changed(note().canonical(), **fields))


def test_names_of_python_are_unknown_on_the_wire() -> None:
    data = changed(note().canonical(), writtenAt=..., written_at=AT)
    with pytest.raises(ContractViolation, match="written_at"):
        Note.parse(data)
    with pytest.raises(ContractViolation, match="written_at"):
        Note.from_wire(json.loads(data))


def test_a_constant_is_written_even_where_it_is_the_only_possible_value() -> None:
    assert Right().canonical() == b'{"kind":"right"}'
    with pytest.raises(ContractViolation, match="constants are written"):
        Right.parse(b"{}")
    with pytest.raises(ContractViolation, match="constants are written"):
        Right.from_wire({})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.replace(b":", b": ", 1),
        lambda data: data + b"\n",
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data[:-1] + b"," + data[1:],
        lambda data: json.dumps(json.loads(data)).encode(),
        lambda data: json.dumps(dict(reversed(json.loads(data).items())), separators=(",", ":")).encode(),
        lambda data: data.replace(b'"final":true', b'"final":true,"final":true'),
        lambda data: data.replace(b'"count":1', b'"count":1e0'),
        lambda data: data.replace(b'"author:1"', b'"\\u0061uthor:1"'),
    ],
)
def test_any_other_spelling_of_the_same_object_is_refused(spoil: Any) -> None:
    data = note().canonical()
    with pytest.raises(ContractViolation):
        Note.parse(spoil(data))


@settings(max_examples=200)
@given(damaged(st.just(note().canonical())))
def test_whatever_a_contract_accepts_unseen_the_walk_accepts_too(data: bytes) -> None:
    try:
        read = Note.parse(data)
    except ContractViolation:
        return
    assert decode(data) == json.loads(rfc8785.dumps(read.wire()))


@settings(max_examples=200)
@given(damaged(st.builds(lambda count: Line(name="a.b", count=count).canonical(), st.integers(0, 2**53 - 1))))
def test_what_a_small_contract_accepts_is_canonical(data: bytes) -> None:
    try:
        read = Line.parse(data)
    except ContractViolation:
        return
    assert decode(data) == read.wire()
    assert rfc8785.dumps(read.wire()) == data


@given(DOCUMENTS)
def test_loose_content_is_looked_at_and_passes_if_it_is_canonical_safe(anything: dict[str, Any]) -> None:
    written = Loose(number=1, words="w", anything=anything)
    assert written.canonical() == rfc8785.dumps({"number": 1, "words": "w", "anything": anything})
    assert Loose.parse(written.canonical()).anything == anything


@given(offending())
def test_loose_content_without_a_canonical_form_is_never_written(anything: dict[str, Any]) -> None:
    loose = Loose.model_construct(number=1, words="w", anything=anything)
    with pytest.raises(ValueError, match=r"\$"):
        loose.canonical()


@pytest.mark.parametrize("fields", [{"number": 2**53}, {"number": 2**70}, {"words": "a\x00"}])
def test_an_unbounded_type_does_not_let_an_unsafe_value_out(fields: dict[str, Any]) -> None:
    values: dict[str, Any] = {"number": 1, "words": "w", "anything": {}}
    with pytest.raises(ValueError, match=r"\$"):
        Loose(**(values | fields)).canonical()


def test_null_inside_loose_content_is_a_value_and_null_in_a_typed_field_is_not() -> None:
    data = b'{"anything":{"a":null},"number":1,"words":"w"}'
    assert Loose.parse(data).canonical() == data
    with pytest.raises(ContractViolation, match="never null"):
        Loose.parse(b'{"anything":{"a":null},"maybe":null,"number":1,"words":"w"}')


def test_python_values_are_not_coerced_either() -> None:
    with pytest.raises(ValidationError):
        Line(name="a", count="1")  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(ValidationError):
        Line(name="a", count=1, more=2)  # type: ignore[call-arg]  # likewise
    with pytest.raises(ValidationError):
        OperationsProjectionApplied(
            operations_projection_applied_receipt=ContentReference(ref="thing:a", schema_version="1", digest="A" * 64)
        )


def test_an_object_is_frozen_and_a_changed_copy_forgets_the_bytes_of_the_original() -> None:
    line = Line(name="a", count=1)
    assert line.canonical() == b'{"count":1,"name":"a"}'
    with pytest.raises(ValidationError):
        line.count = 2  # type: ignore[misc]  # the point of the test
    assert line.model_copy(update={"count": 2}).canonical() == b'{"count":2,"name":"a"}'
    for twin in (copy.copy(line), copy.deepcopy(line), pickle.loads(pickle.dumps(line))):
        assert twin == line
        assert twin.canonical() == line.canonical()


def test_a_refusal_never_repeats_the_value() -> None:
    with pytest.raises(ContractViolation) as refused:
        Hashed.parse(b'{"sha256":"my secret"}')
    assert "secret" not in str(refused.value)


def test_a_reference_inside_another_type_or_as_a_string_is_refused_when_the_class_is_made() -> None:
    with pytest.raises(TypeError, match="not inside another type"):

        class Optional(Contract):
            page: ContentReference | None = None

    with pytest.raises(TypeError, match="not as a string"):

        class Late(Contract):
            page: "ContentReference"


def test_types_prove_by_themselves_whether_their_values_are_safe() -> None:
    assert unsafe_parts(Note.model_json_schema()) == []
    assert set(unsafe_parts(Loose.model_json_schema())) == {"$.number", "$.words", "$.anything"}
    for pattern in (r"^[\x21-\x7e]+$", r"^[^\x00]+$", r"^(0|-?[1-9][0-9]{0,37})$", r"^a?b{2,}$"):
        assert excludes_nul(pattern)
    for pattern in (r"^.*$", r"^[^x]+$", r"[a-z]+", r"^[a-z]+", r"^[\x00-\x7f]$", r"^a\x00$", r"^\w+$", r"^(?=a).*$"):
        assert not excludes_nul(pattern)


class Timed(Contract):
    at: Timestamp
    who: Identifier
    times: Count


@given(st.datetimes(timezones=st.timezones()))
def test_every_aware_datetime_has_one_wire_form_that_is_read_back_as_the_same_instant(moment: Any) -> None:
    try:
        text = timestamp(moment)
    except OverflowError:
        return
    assert Timed(at=text, who="x", times=0).at == text
    assert instant(text) == moment.astimezone(datetime.UTC)


def test_a_naive_datetime_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        timestamp(datetime.datetime(2026, 1, 1))
