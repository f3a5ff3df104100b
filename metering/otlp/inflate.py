"""Undo gzip with a bound on what comes out, and on nothing that a sender could lie about (T3)."""

import zlib

from metering.otlp.wire import Malformed, TooLarge

GZIP = 16 + zlib.MAX_WBITS
FEED = 64 * 1024
STEP = 256 * 1024
"""Bytes that one step takes in and lets out; the bound is kept to within one step."""
MAX_MEMBERS = 1000
"""Gzip members of one body: an empty one costs twenty bytes and an allocation."""


def inflate(body: bytes, *, most: int) -> bytes:
    """What the members of a gzip body hold, one after another.

    Raises `Malformed` for what is no gzip, cut off or damaged, and `TooLarge` beyond `most` bytes.
    """
    whole: list[bytes] = []
    size = position = members = 0
    while position < len(body) or not members:
        members += 1
        if members > MAX_MEMBERS:
            raise TooLarge(f"The body holds more than {MAX_MEMBERS} gzip members.")
        member, ended = zlib.decompressobj(GZIP), False
        while not ended:
            fed = body[position : position + FEED]
            try:
                part = member.decompress(fed, STEP)
            except zlib.error as error:
                raise Malformed(f"The body is no valid gzip: {error}.") from None
            ended = member.eof
            position += len(fed) - len(member.unused_data if ended else member.unconsumed_tail)
            if not (part or fed or ended):
                raise Malformed("The gzip body is cut off.")
            size += len(part)
            if size > most:
                raise TooLarge(f"The body inflates to more than {most} bytes.")
            whole.append(part)
    return b"".join(whole)
