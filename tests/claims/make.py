"""A claim with an attachment, made by the project's own code without a server."""

import io
import uuid
from datetime import UTC, datetime

from attachments.claims.drafts import add_item, begin_claim
from attachments.claims.upload import Stored, Upload, store
from attachments.files.receive import receive
from attachments.http.current_user import CurrentUser
from tests.commercial.make import subscribe

AT = datetime(2026, 7, 17, 12, 0, tzinfo=UTC)


def user(*, limit: int | None = 10_000, user_id: int = 7) -> CurrentUser:
    """A member of a new tenant whose plan allows `limit` bytes, or of one without a plan."""
    plan = {"tool": "storage", "dimension": "attachment.upload", "basis": "bytes"}
    tenant_id = "no-plan" if limit is None else subscribe(limit=limit, **plan).tenant_id
    return CurrentUser(
        user_id=user_id,
        tenant_kind="organization",
        tenant_id=tenant_id,
        is_reviewer=False,
        session_key_for_identity="session:a-session-of-alice",
    )


def item_of(who: CurrentUser, *, number: str | None = None) -> tuple[uuid.UUID, uuid.UUID]:
    """The ids of a new claim and of its item."""
    claim = begin_claim(who, number=number or uuid.uuid4().hex, title="Trip to Basel")
    item = add_item(who, claim.claim_id, description="Hotel", amount_minor=11800, currency="CHF")
    return claim.claim_id, item.item_id


def uploaded(
    who: CurrentUser,
    place: tuple[uuid.UUID, uuid.UUID],
    content: bytes,
    *,
    name: str = "receipt.pdf",
    replaces: uuid.UUID | None = None,
    request_id: str | None = None,
) -> Stored:
    """Store one upload."""
    with receive(io.BytesIO(content)) as incoming:
        sent = Upload(
            claim_id=place[0],
            item_id=place[1],
            name=name,
            media_type="application/pdf",
            incoming=incoming,
            request_id=request_id,
        )
        return store(who, sent, replaces=replaces, at=AT)
