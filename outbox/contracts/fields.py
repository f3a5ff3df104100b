"""The types of which contracts are made. Each one holds canonical-safe values only, by its pattern or its bounds.

A published contract uses these types, literals, booleans and other contracts, and nothing else; publication refuses a
field that could hold a float, an unbounded integer or unrestricted text.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field, StringConstraints

from outbox.contracts.canonical import DIGEST_ALGORITHM, MAX_INTEGER


def _existing(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Identifier = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]
"""An opaque id: 1 to 200 printable ASCII characters without spaces."""
Version = Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=r"^[0-9A-Za-z][0-9A-Za-z._-]*$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
DigestAlgorithm = Literal["jcs-sha256-v1"]
Timestamp = Annotated[
    str,
    StringConstraints(
        pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
        r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}Z$"
    ),
    AfterValidator(_existing),
]
"""RFC 3339, UTC, exactly six fractional digits and `Z`; a day that exists."""
DecimalString = Annotated[str, StringConstraints(pattern=r"^(0|-?[1-9][0-9]{0,37})$")]
"""An integer too large for JSON numbers (money in pico-units), in plain decimal digits."""
Code = Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=r"^[a-z0-9_.-]+$")]
"""A normalized, low-cardinality code."""
Text = Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=r"^[^\x00]+$")]
"""Words for people: 1 to 2000 characters, no U+0000."""
Count = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
"""How many: 0 to 2^53−1."""


def timestamp(instant: datetime) -> str:
    """The one wire form of an aware `datetime`: UTC, microseconds, `Z`. Raises `ValueError` for a naive one."""
    if instant.tzinfo is None:
        raise ValueError("A timestamp on the wire needs a time zone; pass an aware datetime.")
    return instant.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def instant(text: str) -> datetime:
    """The aware `datetime` of a wire timestamp."""
    return datetime.fromisoformat(text)


class ContentReference(NamedTuple):
    """The four-tuple that names one immutable, content-addressed object wherever it travels.

    A plain value: its parts are proven where it enters or leaves a contract, by the types of `REFERENCE_PARTS`.
    """

    ref: str
    schema_version: str
    digest: str
    digest_algorithm_version: Literal["jcs-sha256-v1"] = DIGEST_ALGORITHM


REFERENCE_PARTS: dict[str, Any] = {
    "ref": Identifier,
    "schema_version": Version,
    "digest_algorithm_version": DigestAlgorithm,
    "digest": Sha256,
}
"""What a content reference is flattened into, and the type of each part."""
