"""Canonical bytes and digests: `jcs-sha256-v1` is lower-case hex SHA-256 over RFC 8785 bytes (O6, decisions).

Accepted JSON: objects with ASCII keys, arrays, booleans, null, strings without U+0000 and lone surrogates, integers
within ±(2^53−1). On this subset `orjson` with sorted keys writes the same bytes as RFC 8785; a property test proves it
against an implementation that is not ours. Everything else is refused at the door, never rounded or repaired.

The rules are written once, in `ensure_canonical_safe`, which walks the value and names the path of what it refuses.
The hot path does not walk: it looks at the bytes (`_surely_safe`) and walks only when they show something that the
rules might refuse. A property test proves that both ways accept exactly the same documents.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import orjson

DIGEST_ALGORITHM: Final = "jcs-sha256-v1"
MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 32
"""Nested containers; deeper input is refused so that no consumer recurses further than the producer did."""
MAX_BYTES = 1_048_576
"""Bytes of one canonical document: an event is a fact and its references, never a carrier of bulk data."""

_OPTIONS = orjson.OPT_SORT_KEYS
_DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
_SHORT_INTEGER_DIGITS = 15
"""Every integer of so many digits lies within ±(2^53−1); longer ones are looked at one by one."""
_LONG = b"0" * (_SHORT_INTEGER_DIGITS + 1)


class NotCanonicalSafe(ValueError):
    """The value has no canonical form. Permanent: use strings for decimals, keep integers within ±(2^53−1)."""


def ensure_canonical_safe(value: Any, *, path: str = "$", depth: int = 0) -> None:
    """Refuse what has no canonical form, naming the path. Raises `NotCanonicalSafe`."""
    if isinstance(value, str):
        _ensure_text(value, path)
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int):
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise NotCanonicalSafe(f"{path}: integer {value} is outside ±(2^53−1); send it as a decimal string.")
    elif isinstance(value, dict | list | tuple):
        if depth >= MAX_DEPTH:
            raise NotCanonicalSafe(f"{path}: nested deeper than {MAX_DEPTH} levels.")
        if isinstance(value, dict):
            _ensure_members(value, path, depth)
        else:
            for index, item in enumerate(value):
                ensure_canonical_safe(item, path=f"{path}[{index}]", depth=depth + 1)
    else:
        raise NotCanonicalSafe(
            f"{path}: {type(value).__name__} has no canonical form; decimals and times travel as strings."
        )


def _ensure_members(value: dict[Any, Any], path: str, depth: int) -> None:
    for key, item in value.items():
        if not isinstance(key, str) or not key.isascii():
            raise NotCanonicalSafe(f"{path}: object keys are ASCII strings, not {key!r}.")
        _ensure_text(key, path)
        ensure_canonical_safe(item, path=f"{path}.{key}", depth=depth + 1)


def _ensure_text(value: str, path: str) -> None:
    if "\x00" in value:
        raise NotCanonicalSafe(f"{path}: contains U+0000, which PostgreSQL cannot store.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise NotCanonicalSafe(f"{path}: contains a lone surrogate.") from error


def canonical_bytes(value: Mapping[str, Any]) -> bytes:
    """RFC 8785 bytes of a value from anywhere. Walks it first. Raises `NotCanonicalSafe`."""
    ensure_canonical_safe(value)
    return limited(orjson.dumps(value, option=_OPTIONS))


def encode_trusted(value: Mapping[str, Any]) -> bytes:
    """RFC 8785 bytes of a value that a strict contract (or code) built of JSON types. Raises `NotCanonicalSafe`.

    Trusted are the Python types (orjson would write a UUID or a datetime as text); the content is not.
    """
    data = encode_json(value)
    if not _surely_safe(data):
        ensure_canonical_safe(value)
    return limited(data)


def encode_around(value: Mapping[str, Any], *, member: str, content: bytes) -> bytes:
    """RFC 8785 bytes of a trusted value with one more member, whose canonical bytes exist already.

    Raises `NotCanonicalSafe`.
    """
    data = encode_json({**value, member: orjson.Fragment(content)})
    if not _surely_safe(data):
        ensure_canonical_safe(orjson.loads(data))
    return limited(data)


def encode_json(value: Mapping[str, Any]) -> bytes:
    """Sorted, compact JSON whose content nobody has looked at yet. Raises `NotCanonicalSafe`."""
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except orjson.JSONEncodeError as error:
        ensure_canonical_safe(value)
        raise NotCanonicalSafe(f"$: {error}.") from error


def decode(data: bytes) -> dict[str, Any]:
    """The object in canonical bytes. Raises `NotCanonicalSafe` unless re-encoding gives the very same bytes.

    The comparison also refuses duplicate keys, odd spacing, unsorted keys and `-0`.
    """
    limited(data)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise NotCanonicalSafe(f"$: not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise NotCanonicalSafe("$: a canonical document is an object.")
    if encode_trusted(value) != data:
        ensure_canonical_safe(value)
        raise NotCanonicalSafe("$: these bytes are not the RFC 8785 form of what they say.")
    return value


def _surely_safe(data: bytes) -> bool:
    """True only if a walk over what these orjson bytes say would refuse nothing; False means that it must be walked.

    Without a backslash every quote is the edge of a string, so that splitting at quotes leaves, at the even places, the
    punctuation, numbers and literals. Without a byte above 127 and without an escape no string and no key can offend;
    what is left to look for is a fraction, an exponent, a long integer, and null, as which the encoder also writes NaN.
    """
    if b"\\" in data or not data.isascii():
        return False
    outside = b"".join(data.split(b'"')[::2]).translate(_DIGITS_TO_ZERO)
    if outside.count(b"{") + outside.count(b"[") > MAX_DEPTH:
        return False
    return not (b"." in outside or b"n" in outside or b"0e" in outside or _LONG in outside)


def limited(data: bytes) -> bytes:
    """The bytes themselves. Raises `NotCanonicalSafe` for more than `MAX_BYTES`."""
    if len(data) > MAX_BYTES:
        raise NotCanonicalSafe(f"$: {len(data)} bytes; a document has at most {MAX_BYTES}. Refer to bulk data instead.")
    return data


def sha256_hex(data: bytes) -> str:
    """Lower-case hex SHA-256 of bytes that are already canonical."""
    return hashlib.sha256(data).hexdigest()


def digest(value: Mapping[str, Any]) -> str:
    """`jcs-sha256-v1` of a value from anywhere. Raises `NotCanonicalSafe`."""
    return sha256_hex(canonical_bytes(value))
