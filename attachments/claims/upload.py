"""Store an upload, and count it exactly when it committed (C5, C6, C7).

Quota is asked for before any row or file of the claim is touched. Then, in one transaction under the claim's row lock:
the attachment's row, the record of the upload, and the file under a fresh id; what it replaces goes aside. Whatever
stops it, the database rolls back, the old file stands, and the quota is given back.

What one upload is, is said by X-Request-ID where it is given, within one account, claim and item; else by session,
tenant, claim, item and content. So a repeat counts nothing, and the same X-Request-ID never stands for two contents.
"""

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid5

from django.db import DatabaseError
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from attachments.claims.access import find_attachment, find_item, lock_draft
from attachments.claims.errors import TooMany, UploadConflict, translate
from attachments.claims.members import ALIAS
from attachments.claims.models import Attachment, AttachmentUpload, Claim
from attachments.files.path import StoredPath
from attachments.files.receive import Incoming
from attachments.files.stage import StagedFiles
from attachments.http.current_user import CurrentUser
from billing.commercial import hooks
from outbox.steps import reach

OWNER = "attachments"
TOOL, DIMENSION = "storage", "attachment.upload"
MOST_ATTACHMENTS = 100
"""Of one item: it is read, answered and deleted as a whole."""
TENANTS = UUID("6f1f8a5e-4c55-5b0e-9d0b-0d8f3a0f6c21")
"""The namespace in which a tenant's folder has its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """One file as it came, received beside the tree. `request_id` is the caller's X-Request-ID, if there is one."""

    claim_id: UUID
    item_id: UUID
    name: str
    media_type: str
    incoming: Incoming
    request_id: str | None


@dataclass(frozen=True, slots=True)
class Stored:
    """The attachment as it is now; `is_new` if this upload made it."""

    attachment: Attachment
    is_new: bool


def store(user: CurrentUser, upload: Upload, *, replaces: UUID | None, at: datetime) -> Stored:
    """Make an attachment of the upload, or give `replaces` this content. Call it outside any transaction.

    The same upload again writes the file again into the attachment that it made. Raises `UploadConflict`, `TooMany`,
    what `lock_draft` raises, `UnknownItem`, `UnknownAttachment`, every `FilesError` and every `CommercialError`.
    """
    upload_sha256 = upload_hash(user, upload)
    _ensure_same_content(upload, upload_sha256)
    try:
        with hooks.business_transaction(using=ALIAS) as work:
            permit = work.reserve(operation_of(user, upload), quantity=upload.incoming.size, at=at)
            reach("claims.permitted")
            claim = lock_draft(user, upload.claim_id)
            find_item(user, upload.claim_id, upload.item_id, using=ALIAS)
            attachment, old = _written(user, upload, replaces)
            _record(claim, upload, upload_sha256, is_metered=permit.state is not hooks.PermitState.UNMETERED)
            reach("claims.rows")
            staged = StagedFiles(work)
            staged.place(content_path(claim, upload.item_id, attachment.content_id), upload.incoming)
            if old is not None:
                staged.remove(content_path(claim, upload.item_id, old))
            reach("claims.staged")
    except DatabaseError as error:
        translate(error)
    return Stored(attachment, is_new=old is None)


def operation_of(user: CurrentUser, upload: Upload) -> hooks.Operation:
    """The operation that this upload is, for whoever repeats it."""
    return hooks.Operation(
        tenant_kind=user.tenant_kind,
        tenant_id=user.tenant_id,
        tool=TOOL,
        dimension=DIMENSION,
        quantity_basis="bytes",
        identity=_identity(user, upload),
    )


def upload_hash(user: CurrentUser, upload: Upload) -> str:
    """The same identity as billing knows it: a keyed hash."""
    return operation_of(user, upload).fingerprint(business=OWNER)


def folder_of(claim: Claim) -> StoredPath:
    """Where everything of a claim is stored."""
    return StoredPath.of(_tenant_id(claim), claim.claim_id)


def content_path(claim: Claim, item_id: UUID, content_id: UUID | None = None) -> StoredPath:
    """Where one content is stored, or everything of an item."""
    return StoredPath.of(_tenant_id(claim), claim.claim_id, item_id, content_id)


def _tenant_id(claim: Claim) -> UUID:
    return uuid5(TENANTS, f"{claim.tenant_kind}:{claim.tenant_id}")


def _identity(user: CurrentUser, upload: Upload) -> tuple[str, ...]:
    claim = hooks.keyed_hash("claim", str(upload.claim_id))
    item = hooks.keyed_hash("item", str(upload.item_id))
    if upload.request_id is not None:
        return ("request", str(user.user_id), claim, item, upload.request_id)
    return ("content", user.session_key_for_identity, claim, item, upload.incoming.sha256)


def _origin(user: CurrentUser, upload: Upload) -> str:
    """Which attachment an upload makes: without X-Request-ID one content under two names makes two."""
    name = () if upload.request_id is not None else (upload.name,)
    return hooks.keyed_hash("origin@1", user.tenant_ref, *_identity(user, upload), *name)


def _ensure_same_content(upload: Upload, upload_sha256: str) -> None:
    known = AttachmentUpload.objects.using(ALIAS).filter(upload_sha256=upload_sha256).first()
    if known is not None and (known.content_sha256, known.size_bytes) != (upload.incoming.sha256, upload.incoming.size):
        raise UploadConflict(UploadConflict.__doc__)


def _written(user: CurrentUser, upload: Upload, replaces: UUID | None) -> tuple[Attachment, UUID | None]:
    """The attachment's row with the new content, and the id of the content that it had before."""
    origin = _origin(user, upload)
    rows = Attachment.objects.using(ALIAS).filter(item_id=upload.item_id)
    if replaces is not None:
        found: Attachment | None = find_attachment(user, upload.claim_id, upload.item_id, replaces, using=ALIAS)
    else:
        found = rows.filter(origin_sha256=origin).first()
    if found is None and rows.count() >= MOST_ATTACHMENTS:
        raise TooMany(f"An item has at most {MOST_ATTACHMENTS} attachments. {TooMany.__doc__}")
    old = found.content_id if found else None
    attachment = found or Attachment(attachment_id=uuid7(), item_id=upload.item_id, origin_sha256=origin)
    attachment.content_id = uuid7()
    attachment.name = unicodedata.normalize("NFC", upload.name)
    attachment.media_type = upload.media_type
    attachment.size_bytes = upload.incoming.size
    attachment.content_sha256 = upload.incoming.sha256
    attachment.stored_at = Now()
    if found is None:
        attachment.save(using=ALIAS, force_insert=True)
    else:
        attachment.save(using=ALIAS, update_fields=list(Attachment.owner_may_update))
    attachment.refresh_from_db(using=ALIAS)
    return attachment, old


def _record(claim: Claim, upload: Upload, upload_sha256: str, *, is_metered: bool) -> None:
    """Write the upload down, once. Raises `UploadConflict` if a parallel one wrote another content."""
    rows = AttachmentUpload.objects.using(ALIAS)
    rows.bulk_create(
        [
            AttachmentUpload(
                upload_sha256=upload_sha256,
                tenant_kind=claim.tenant_kind,
                tenant_id=claim.tenant_id,
                claim_id=upload.claim_id,
                item_id=upload.item_id,
                size_bytes=upload.incoming.size,
                content_sha256=upload.incoming.sha256,
                is_metered=is_metered,
            )
        ],
        ignore_conflicts=True,
    )
    _ensure_same_content(upload, upload_sha256)
    if is_metered:
        rows.filter(upload_sha256=upload_sha256, is_metered=False).update(is_metered=True)
