"""The protobuf wire format, as far as the receiver walks it itself: where the fields of a message begin and end."""

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10


class Malformed(ValueError):
    """The body is no ExportLogsServiceRequest. Permanent: correct the exporter."""


class TooLarge(ValueError):
    """The request holds more than the receiver takes at once. Permanent: send smaller batches."""


def parts(body: bytes, position: int, end: int, wanted: int) -> Iterator[tuple[int, int]]:
    """Where each length-delimited field `wanted` of the message at `position` begins and ends; others are skipped."""
    while position < end:
        tag, position = _varint(body, position, end)
        kind, number = tag & 7, tag >> 3
        if not number or (number == wanted and kind != BYTES):
            raise Malformed("A field has another number or wire type than it may have.")
        if kind == BYTES:
            length, position = _varint(body, position, end)
            stop = position + length
            if stop > end:
                raise Malformed("A field is longer than its message.")
            if number == wanted:
                yield position, stop
            position = stop
        elif kind == VARINT:
            _, position = _varint(body, position, end)
        elif kind in {FIXED64, FIXED32}:
            position += 8 if kind == FIXED64 else 4
            if position > end:
                raise Malformed("A field is longer than its message.")
        else:
            raise Malformed("A field has an unknown wire type.")


def _varint(body: bytes, position: int, end: int) -> tuple[int, int]:
    """The number at `position`, and where it ends."""
    if position < end:
        byte = body[position]
        if byte < 0x80:  # noqa: PLR2004  # the continuation bit
            return byte, position + 1
    value = shift = 0
    for place in range(position, min(end, position + _MAX_VARINT_BYTES)):
        byte = body[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004  # as above
            return value, place + 1
        shift += 7
    raise Malformed("A number is cut off.")


def fields(body: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Every field of a message: number, wire type, where its value begins and ends. Raises `Malformed`."""
    position, end = 0, len(body)
    while position < end:
        tag, position = _varint(body, position, end)
        kind, number = tag & 7, tag >> 3
        start = position
        if kind == BYTES:
            length, start = _varint(body, position, end)
            position = start + length
        elif kind == VARINT:
            _, position = _varint(body, position, end)
        elif kind in {FIXED64, FIXED32}:
            position += 8 if kind == FIXED64 else 4
        else:
            raise Malformed("A field has an unknown wire type.")
        if not number or position > end:
            raise Malformed("A field has no number, or is longer than its message.")
        yield number, kind, start, position
