"""Small contracts of every kind, for tests of the mechanism."""

from typing import Annotated, Any, Literal

from pydantic import Field

from outbox.contracts.contract import (
    ContentAddressed,
    ContentReference,
    Contract,
    Count,
    Identifier,
    Sha256,
    Text,
    Timestamp,
)

AT = "2026-09-24T10:15:30.000001Z"


class Left(Contract):
    kind: Literal["left"] = "left"
    evidence: ContentReference


class Right(Contract):
    kind: Literal["right"] = "right"


class Line(Contract):
    name: Identifier
    count: Count


class Note(ContentAddressed, own="field_note", version="3", excluded=("written_at",)):
    """Every kind of field; its types admit canonical-safe values only."""

    author: Identifier
    words: Text
    lines: tuple[Line, ...]
    final: bool
    branch: Annotated[Left | Right, Field(discriminator="kind")]
    page: ContentReference
    supersedes: Identifier | None = None
    written_at: Timestamp


class Loose(Contract):
    """Types that admit values without a canonical form, which must then be looked at."""

    number: int
    words: str
    anything: dict[str, Any]
    maybe: Identifier | None = None


class Hashed(Contract):
    sha256: Sha256


def reference(letter: str = "a") -> ContentReference:
    return ContentReference(ref=f"thing:{letter}", schema_version="1", digest=letter * 64)


def note(**changed: Any) -> Note:
    fields: dict[str, Any] = {
        "author": "author:1",
        "words": 'Ünïcode "quoted" \\ and \n lines',
        "lines": (Line(name="a", count=1), Line(name="b", count=2)),
        "final": True,
        "branch": Left(evidence=reference("b")),
        "page": reference("c"),
        "written_at": AT,
    }
    return Note.issue(ref="field-note:1", **(fields | changed))
