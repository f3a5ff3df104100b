"""Delete an attachment, an item, or a draft with all that belongs to it (C5).

Rows go in the transaction, and files go aside with it: gone after the commit, back after a rollback. No quota is asked
for, so none can refuse it, and nothing is counted.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import DatabaseError

from attachments.claims.access import find_attachment, find_item, lock_draft
from attachments.claims.errors import translate
from attachments.claims.members import ALIAS
from attachments.claims.models import Attachment, Claim, ClaimItem
from attachments.claims.upload import content_path, folder_of
from attachments.files.stage import StagedFiles
from attachments.http.current_user import CurrentUser
from billing.commercial import hooks
from outbox.steps import reach


def delete_attachment(user: CurrentUser, claim_id: UUID, item_id: UUID, attachment_id: UUID) -> None:
    """Of two at once, one deletes and the other raises `UnknownAttachment`. Raises what `lock_draft` raises as well."""
    with _deletes() as work:
        claim = lock_draft(user, claim_id)
        found = find_attachment(user, claim_id, item_id, attachment_id, using=ALIAS)
        Attachment.objects.using(ALIAS).filter(attachment_id=attachment_id).delete()
        reach("claims.rows_deleted")
        StagedFiles(work).remove(content_path(claim, item_id, found.content_id))


def delete_item(user: CurrentUser, claim_id: UUID, item_id: UUID) -> None:
    """With its attachments. Raises what `lock_draft` raises, `UnknownItem`."""
    with _deletes() as work:
        claim = lock_draft(user, claim_id)
        find_item(user, claim_id, item_id, using=ALIAS)
        Attachment.objects.using(ALIAS).filter(item_id=item_id).delete()
        ClaimItem.objects.using(ALIAS).filter(item_id=item_id).delete()
        reach("claims.rows_deleted")
        StagedFiles(work).remove(content_path(claim, item_id))


def delete_claim(user: CurrentUser, claim_id: UUID) -> None:
    """With its items and their attachments. Raises what `lock_draft` raises."""
    with _deletes() as work:
        claim = lock_draft(user, claim_id)
        Attachment.objects.using(ALIAS).filter(item__claim_id=claim_id).delete()
        ClaimItem.objects.using(ALIAS).filter(claim_id=claim_id).delete()
        Claim.objects.using(ALIAS).filter(claim_id=claim_id).delete()
        reach("claims.rows_deleted")
        StagedFiles(work).remove(folder_of(claim))


@contextmanager
def _deletes() -> Iterator[hooks.BusinessTransaction]:
    try:
        with hooks.business_transaction(using=ALIAS) as work:
            yield work
    except DatabaseError as error:
        translate(error)
