"""What the headers of a request say, read once (T1)."""

from collections.abc import Sequence
from dataclasses import dataclass

from metering.otlp.answers import JSON, PROTOBUF

RawHeaders = Sequence[tuple[bytes, bytes]]
IDENTITY = frozenset({b"", b"identity"})
GZIP = frozenset({b"gzip", b"x-gzip"})


class Unsupported(Exception):
    """The body has a form that is not read. Permanent: send protobuf, plain or as gzip."""


@dataclass(frozen=True, slots=True)
class Described:
    """The form of a body, and how long it says it is (None: nobody knows before it ends)."""

    is_gzip: bool
    is_json: bool
    announced: int | None


def authorization(headers: RawHeaders) -> bytes | None:
    """The value of the Authorization header; two of them are as good as a malformed one."""
    found = [value for name, value in headers if name == b"authorization"]
    return found[0] if len(found) == 1 else b"" if found else None


def is_json(headers: RawHeaders) -> bool:
    """Whether the request's own encoding is JSON, whether or not that is accepted: errors are told in it."""
    return _media_type(headers) == JSON


def described(headers: RawHeaders, *, accepts_json: bool) -> Described:
    """The form of the body. Raises `Unsupported`, saying what is read instead."""
    media_type = _media_type(headers)
    if media_type != PROTOBUF and not (accepts_json and media_type == JSON):
        accepted = "application/x-protobuf or application/json" if accepts_json else "application/x-protobuf"
        raise Unsupported(f"Send Content-Type: {accepted}.")
    encoding = _value(headers, b"content-encoding")
    if encoding not in IDENTITY | GZIP:
        raise Unsupported("Send Content-Encoding: gzip, or none.")
    if _value(headers, b"transfer-encoding") not in {b"", b"chunked"}:
        raise Unsupported("Send Transfer-Encoding: chunked, or none.")
    length = _value(headers, b"content-length")
    return Described(
        is_gzip=encoding in GZIP, is_json=media_type == JSON, announced=int(length) if length.isdigit() else None
    )


def _media_type(headers: RawHeaders) -> bytes:
    return _value(headers, b"content-type").partition(b";")[0].strip()


def _value(headers: RawHeaders, wanted: bytes) -> bytes:
    """All values of a header as one, in lower case."""
    return b",".join(value for name, value in headers if name == wanted).strip().lower()
