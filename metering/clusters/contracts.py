"""What the token API answers, and what it is asked: `/api/v1/admin/clusters/<cluster id>/otlp-tokens` (T2)."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from outbox.contracts.canonical import MAX_INTEGER
from outbox.contracts.contract import Contract, Identifier, Text, Timestamp

ClusterId = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,18}$")]
"""The decimal number that every stored event carries."""
TokenMode = Literal["gateway", "per_cluster"]
TokenState = Literal["minted", "primary", "unsettled", "superseded", "revoked"]


class RotateRequest(Contract):
    """The body of a rotation, which may also be empty. A mode also becomes the mode of later tokens."""

    mode: TokenMode | None = None


class SupersededToken(Contract):
    """A token of before; it is accepted before `expires_at`."""

    token_id: Identifier
    expires_at: Timestamp


class RotatedToken(Contract):
    """The answer to a rotation, and the only one that ever holds the token itself."""

    cluster_id: ClusterId
    token_id: Identifier
    token: Identifier
    mode: TokenMode
    issued_at: Timestamp
    grace_seconds: Annotated[int, Field(ge=259_200, le=MAX_INTEGER)]
    superseded: tuple[SupersededToken, ...]


class ListedToken(Contract):
    """What may be seen of a token: never the token, never its hash."""

    token_id: Identifier
    mode: TokenMode
    state: TokenState
    accepted: bool
    issued_at: Timestamp
    handed_over_at: Timestamp | None = None
    superseded_at: Timestamp | None = None
    expires_at: Timestamp | None = None
    revoked_at: Timestamp | None = None


class TokenList(Contract):
    """The newest tokens of a cluster first; `truncated` if it has older ones beside them."""

    cluster_id: ClusterId
    tokens: tuple[ListedToken, ...]
    truncated: bool


class RevokedToken(Contract):
    """The answer to a revocation; `revoked_before` if it changed nothing."""

    cluster_id: ClusterId
    token_id: Identifier
    revoked_before: bool


class ApiRefusal(Contract):
    """Every answer that is not a success: a code whose first three digits are the status, and what to do."""

    code: Annotated[int, Field(ge=40_000, le=59_999)]
    message: Text


PUBLISHED = (RotateRequest, RotatedToken, TokenList, RevokedToken, ApiRefusal)
