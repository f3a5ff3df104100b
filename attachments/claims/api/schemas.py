"""What is sent and answered. Names on the wire are in camelCase; ids are UUIDs, times RFC 3339, sizes bytes."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from ninja import Schema
from pydantic import ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from attachments.claims.models.claim import LONGEST_NUMBER, LONGEST_TEXT

PRINTED = r"^[^\x00-\x1f\x7f-\x9f]+$"
LARGEST_AMOUNT = 2**53 - 1
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_TEXT, pattern=PRINTED)]
Number = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_NUMBER, pattern=PRINTED)
]
Amount = Annotated[int, Field(ge=0, le=LARGEST_AMOUNT, strict=True)]
Currency = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]


class _Wire(Schema):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class _Sent(_Wire):
    """A name that is not known here is refused: it would be a misunderstanding."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class ClaimToBegin(_Sent):
    """A new claim. Its number is the tenant's own and given once."""

    number: Number
    title: Text


class ClaimToChange(_Sent):
    """What of a draft changes."""

    title: Text


class ItemToAdd(_Sent):
    """One expense; the amount is in the smallest unit of its currency."""

    description: Text
    amount_minor: Amount
    currency: Currency


class ItemToChange(_Sent):
    """What of an item changes; what is left out stays."""

    description: Text | None = None
    amount_minor: Amount | None = None
    currency: Currency | None = None


class AttachmentRead(_Wire):
    """One attachment. `contentSha256` is lower-case hex over its bytes."""

    attachment_id: UUID
    name: str
    media_type: str
    size_bytes: int
    content_sha256: str
    created_at: datetime
    stored_at: datetime


class ItemRead(_Wire):
    """One expense with its attachments."""

    item_id: UUID
    description: str
    amount_minor: int
    currency: str
    created_at: datetime
    attachments: list[AttachmentRead]


class ClaimListed(_Wire):
    """One claim in a list."""

    claim_id: UUID
    number: str
    title: str
    state: Literal["draft", "submitted"]
    created_at: datetime
    submitted_at: datetime | None


class ClaimRead(ClaimListed):
    """One claim with everything in it."""

    items: list[ItemRead]


class ClaimPage(_Wire):
    """The newest claims first; `next` is the `before` of the page after it."""

    claims: list[ClaimListed]
    next: UUID | None
