"""Hypothesis strategies: canonical documents, and documents with one thing in them that has no canonical form."""

import math
from typing import Any

from hypothesis import strategies as st

from outbox.contracts.canonical import MAX_INTEGER

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
"""Any text but U+0000 and surrogates: quotes, backslashes, control characters and every plane included."""
KEYS = st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=8)
INTEGERS = st.one_of(
    st.integers(-MAX_INTEGER, MAX_INTEGER),
    st.sampled_from([0, -1, 10**14, 10**15 - 1, 10**15, 10**15 + 1, MAX_INTEGER, -MAX_INTEGER]),
)
SCALARS = st.one_of(st.none(), st.booleans(), INTEGERS, TEXT)
DOCUMENTS = st.dictionaries(
    KEYS,
    st.recursive(
        SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20
    ),
    max_size=6,
)


@st.composite
def damaged(draw: st.DrawFn, originals: st.SearchStrategy[bytes]) -> bytes:
    """Bytes in which a few places were cut, doubled or overwritten, with a preference for what means something."""
    data = bytearray(draw(originals))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(data)))
        piece = draw(st.sampled_from(PIECES) | st.binary(max_size=2))
        data[place : place + draw(st.integers(0, 2))] = piece
    return bytes(data)


PIECES = (
    b"", b"0", b"1", b".5", b"e3", b"E3", b"-", b"null", b"true", b" ", b",", b":", b'"', b"{", b"}", b"[", b"]", b"\\",
    b"\\u0000", b"\\u0041", b"\\n", b"\xc3\xa9", b"\xff", b"9007199254740992", b'"a":1,', b"1234567890123456",
)  # fmt: skip

OFFENDING_SCALARS = st.one_of(
    st.floats(),
    st.sampled_from([0.5, 1e16, 1e300, -0.0, math.nan, math.inf, 1.0]),
    st.integers(min_value=MAX_INTEGER + 1, max_value=2**70),
    st.integers(min_value=-(2**70), max_value=-MAX_INTEGER - 1),
    TEXT.map(lambda text: text + "\x00"),
    st.sampled_from(["\ud800", "a\udfffb"]),
)
OFFENDING_KEYS = st.sampled_from(["é", "\x00", "k\x00", "ключ", "\U0001f600"])


@st.composite
def offending(draw: st.DrawFn) -> dict[str, Any]:
    """A document with exactly one offence, at any depth."""
    bad: Any = draw(OFFENDING_SCALARS | st.dictionaries(OFFENDING_KEYS, SCALARS, min_size=1, max_size=1))
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            bad = [*draw(st.lists(SCALARS, max_size=2)), bad]
        else:
            bad = {**draw(st.dictionaries(KEYS, SCALARS, max_size=2)), "x": bad}
    return {**draw(DOCUMENTS), "x": bad}
