"""Canonical bytes: equal to RFC 8785 by an implementation that is not ours, and nothing else is let in."""

import hashlib
import json
import math
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given, settings

from outbox.contracts.canonical import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_INTEGER,
    NotCanonicalSafe,
    canonical_bytes,
    decode,
    digest,
    encode_trusted,
    ensure_canonical_safe,
)
from tests.contracts.documents import DOCUMENTS, damaged, offending

pytestmark = pytest.mark.spec("O6")


def accepted(call: Any, value: Any) -> bool:
    try:
        call(value)
    except NotCanonicalSafe:
        return False
    return True


@given(DOCUMENTS)
@example({"\x7f": "\x7f", '\x1f\b\t\n\f\r"\\/': "\u2028\u2029\uffff\U0010ffff", "": ""})
@example({"a": 10**15, "b": 10**15 - 1, "c": "12345678901234567890", "d": "1.5e3", "e": "null"})
def test_both_encoders_write_the_bytes_of_rfc_8785(document: dict[str, Any]) -> None:
    theirs = rfc8785.dumps(document)
    assert canonical_bytes(document) == theirs
    assert encode_trusted(document) == theirs
    assert decode(theirs) == document
    assert digest(document) == hashlib.sha256(theirs).hexdigest()


@given(offending())
@example({"a": math.nan})
@example({"a": [None, {"b": 9007199254740992}]})
@example({"a": "x" * 100 + "\x00"})
def test_whatever_has_no_canonical_form_is_refused_by_the_walk_and_by_the_fast_way_alike(
    document: dict[str, Any],
) -> None:
    assert not accepted(ensure_canonical_safe, document)
    assert not accepted(canonical_bytes, document)
    assert not accepted(encode_trusted, document)


@given(offending())
def test_foreign_json_with_something_outside_the_subset_is_refused_when_read(document: dict[str, Any]) -> None:
    compact = json.dumps(document, sort_keys=True, separators=(",", ":"))
    escaped = compact.encode()
    raw = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass")
    assert not accepted(decode, escaped)
    assert not accepted(decode, raw)


def slowly_decoded(data: bytes) -> dict[str, Any] | None:
    """What the bytes say, by the standard library, the walk and rfc8785 alone; None if any of them refuses."""

    def refuse(token: str) -> Any:
        raise ValueError(token)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        return found if len(found) == len(pairs) else refuse("twice")

    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=unique, parse_float=refuse, parse_constant=refuse)
        ensure_canonical_safe(value)
        return value if isinstance(value, dict) and rfc8785.dumps(value) == data else None
    except (ValueError, RecursionError):
        return None


@settings(max_examples=400)
@given(damaged(DOCUMENTS.map(rfc8785.dumps)))
@example(b'{"a":1.5}')
@example(b'{"a":"\\"","b":1e5}')
@example(b'{"a":1000000000000000}')
@example(b'{"a":null}')
def test_the_fast_reader_accepts_exactly_what_the_slow_one_accepts(data: bytes) -> None:
    expected = slowly_decoded(data)
    if expected is None:
        assert not accepted(decode, data)
    else:
        assert decode(data) == expected


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"a": {"b": [1, 1.5]}}, "$.a.b[1]: float"),
        ({"a": math.nan}, "$.a: float"),
        ({"a": MAX_INTEGER + 1}, "$.a: integer 9007199254740992"),
        ({"a": 2**70}, "$.a: integer"),
        ({"a": ["\x00"]}, "$.a[0]: contains U+0000"),
        ({"a": "\ud800"}, "$.a: contains a lone surrogate"),
        ({"a": {"é": 1}}, "$.a: object keys are ASCII"),
        ({"a": {1: 1}}, "$.a: object keys are ASCII"),
        ({"a": b"x"}, "$.a: bytes has no canonical form"),
        ({"a": {1, 2}}, "$.a: set has no canonical form"),
    ],
)
def test_a_refusal_names_the_path_and_the_reason(document: dict[str, Any], path: str) -> None:
    for call in (canonical_bytes, encode_trusted):
        with pytest.raises(NotCanonicalSafe) as refused:
            call(document)
        assert str(refused.value).startswith(path)


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1,"a":1}',
        b'{"a":1,"a":2}',
        b'{"a": 1}',
        b'{"a":1}\n',
        b' {"a":1}',
        b'{"b":1,"a":1}',
        b'{"a":1.0}',
        b'{"a":1e2}',
        b'{"a":1E400}',
        b'{"a":-0}',
        b'{"a":01}',
        b'{"a":+1}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'\xef\xbb\xbf{"a":1}',
        b'{"a":"\\ud800"}',
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":"\xff"}',
        b'{"a":"\\u0000"}',
        b'{"a":"\\u0041"}',
        b'{"a":"\\/"}',
        b'{"a":"\\u000A"}',
        b'{"a":9007199254740992}',
        b'{"a":123456789012345678901234567890}',
        b'{"\xc3\xa9":1}',
        b'{"a":1}{"a":1}',
        b'{"a":1,}',
        b"{'a':1}",
        b"[1]",
        b'"a"',
        b"null",
        b"",
    ],
)
def test_bytes_that_are_not_the_canonical_form_of_an_object_are_refused(data: bytes) -> None:
    with pytest.raises(NotCanonicalSafe):
        decode(data)


def test_utf_16_and_utf_32_are_refused() -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        with pytest.raises(NotCanonicalSafe):
            decode('{"a":1}'.encode(encoding))


@pytest.mark.parametrize("opened", ["{", "["])
def test_depth_is_limited_to_the_same_number_for_writer_and_reader(opened: str) -> None:
    def nested(levels: int) -> dict[str, Any]:
        inner: Any = 1
        for _ in range(levels - 1):
            inner = {"a": inner} if opened == "{" else [inner]
        return {"a": inner}

    deepest = nested(MAX_DEPTH)
    assert decode(canonical_bytes(deepest)) == deepest
    for levels in (MAX_DEPTH + 1, 200, 300, 900):
        too_deep = nested(levels)
        assert not accepted(canonical_bytes, too_deep)
        assert not accepted(encode_trusted, too_deep)
        assert not accepted(decode, rfc8785.dumps(too_deep))


def test_many_shallow_containers_are_not_mistaken_for_deep_ones() -> None:
    wide: dict[str, Any] = {"a": [{"b": []} for _ in range(100)]}
    assert decode(encode_trusted(wide)) == wide


def test_a_document_over_the_limit_is_refused_by_writer_and_reader() -> None:
    fits = {"a": "x" * (MAX_BYTES - 8)}
    assert len(canonical_bytes(fits)) == MAX_BYTES
    too_long = {"a": "x" * (MAX_BYTES - 7)}
    assert not accepted(canonical_bytes, too_long)
    assert not accepted(encode_trusted, too_long)
    assert not accepted(decode, rfc8785.dumps(too_long))
