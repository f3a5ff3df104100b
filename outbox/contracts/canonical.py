"""Canonical bytes and digests: `jcs-sha256-v1` is lower-case hex SHA-256 over RFC 8785 bytes (O6, decisions).

Accepted JSON: objects with ASCII keys, arrays, booleans, null, strings without U+0000 and lone surrogates, integers
within ±(2^53−1). On this subset `orjson` with sorted keys writes the same bytes as RFC 8785; a property test proves it
against an implementation that is not ours. Everything else is refused at the door, never rounded or repaired.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

DIGEST_ALGORITHM = "jcs-sha256-v1"
MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 32
"""Nested containers; deeper input is refused so that no consumer recurses further than the producer did."""

_OPTIONS = orjson.OPT_SORT_KEYS


class NotCanonicalSafe(ValueError):
    """The value has no canonical form. Permanent: use strings for decimals, keep integers within ±(2^53−1)."""


def ensure_canonical_safe(value: Any, *, path: str = "$", depth: int = 0) -> None:
    """Refuse what has no canonical form, naming the path. Raises `NotCanonicalSafe`."""
    kind = type(value)
    if kind is str:
        _ensure_text(value, path)
    elif kind is bool or value is None:
        return
    elif kind is int:
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise NotCanonicalSafe(f"{path}: integer {value} is outside ±(2^53−1); send it as a decimal string.")
    elif depth >= MAX_DEPTH:
        raise NotCanonicalSafe(f"{path}: nested deeper than {MAX_DEPTH} levels.")
    elif kind is dict:
        for key, item in value.items():
            if type(key) is not str or not key.isascii():
                raise NotCanonicalSafe(f"{path}: object keys are ASCII strings, not {key!r}.")
            _ensure_text(key, path)
            ensure_canonical_safe(item, path=f"{path}.{key}", depth=depth + 1)
    elif kind is list or kind is tuple:
        for index, item in enumerate(value):
            ensure_canonical_safe(item, path=f"{path}[{index}]", depth=depth + 1)
    else:
        raise NotCanonicalSafe(f"{path}: {kind.__name__} has no canonical form; decimals and times travel as strings.")


def _ensure_text(value: str, path: str) -> None:
    if "\x00" in value:
        raise NotCanonicalSafe(f"{path}: contains U+0000, which PostgreSQL cannot store.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise NotCanonicalSafe(f"{path}: contains a lone surrogate.") from error


def canonical_bytes(value: Mapping[str, Any]) -> bytes:
    """RFC 8785 bytes of a value from anywhere. Checks the subset first. Raises `NotCanonicalSafe`."""
    ensure_canonical_safe(value)
    return encode_trusted(value)


def encode_trusted(value: Mapping[str, Any]) -> bytes:
    """RFC 8785 bytes of a value whose types a strict contract already fixed. Raises `NotCanonicalSafe`."""
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except orjson.JSONEncodeError as error:
        raise NotCanonicalSafe(f"$: {error}.") from error


def decode(data: bytes) -> dict[str, Any]:
    """The object in canonical bytes. Raises `NotCanonicalSafe` unless re-encoding gives the very same bytes.

    The comparison also refuses duplicate keys, odd spacing, unsorted keys, floats and `-0`.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise NotCanonicalSafe(f"$: not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise NotCanonicalSafe("$: a canonical document is an object.")
    ensure_canonical_safe(value)
    if orjson.dumps(value, option=_OPTIONS) != data:
        raise NotCanonicalSafe("$: these bytes are not the RFC 8785 form of what they say.")
    return value


def sha256_hex(data: bytes) -> str:
    """Lower-case hex SHA-256 of bytes that are already canonical."""
    return hashlib.sha256(data).hexdigest()


def digest(value: Mapping[str, Any]) -> str:
    """`jcs-sha256-v1` of a value from anywhere. Raises `NotCanonicalSafe`."""
    return sha256_hex(canonical_bytes(value))
