"""Which claims a caller may see, and which one may be changed (C5).

Nobody sees a claim of another tenant. Within a tenant a member sees the claims that they began, and a reviewer all of
them; a claim is changed by whoever began it, as long as it is a draft.
"""

from uuid import UUID

from django.db.models import QuerySet

from attachments.claims.errors import NotDraft, NotYours, UnknownAttachment, UnknownClaim, UnknownItem
from attachments.claims.members import ALIAS, READ_ALIAS
from attachments.claims.models import Attachment, Claim, ClaimItem, ClaimState
from attachments.http.current_user import CurrentUser


def claims_of(user: CurrentUser, *, using: str = READ_ALIAS) -> "QuerySet[Claim]":
    """What this caller may see."""
    rows = Claim.objects.using(using).filter(tenant_kind=user.tenant_kind, tenant_id=user.tenant_id)
    return rows if user.is_reviewer else rows.filter(created_by=user.user_id)


def find_claim(user: CurrentUser, claim_id: UUID) -> Claim:
    """A claim to be read. Raises `UnknownClaim`."""
    claim = claims_of(user).filter(claim_id=claim_id).first()
    if claim is None:
        raise UnknownClaim(UnknownClaim.__doc__)
    return claim


def find_item(user: CurrentUser, claim_id: UUID, item_id: UUID, *, using: str = READ_ALIAS) -> ClaimItem:
    """An item to be read. Raises `UnknownClaim`, `UnknownItem`."""
    item = ClaimItem.objects.using(using).filter(item_id=item_id, claim__in=claims_of(user, using=using))
    found = item.filter(claim_id=claim_id).first()
    if found is None:
        find_claim(user, claim_id)
        raise UnknownItem(UnknownItem.__doc__)
    return found


def find_attachment(
    user: CurrentUser, claim_id: UUID, item_id: UUID, attachment_id: UUID, *, using: str = READ_ALIAS
) -> Attachment:
    """An attachment to be read. Raises `UnknownClaim`, `UnknownItem`, `UnknownAttachment`."""
    find_item(user, claim_id, item_id, using=using)
    found = Attachment.objects.using(using).filter(item_id=item_id, attachment_id=attachment_id).first()
    if found is None:
        raise UnknownAttachment(UnknownAttachment.__doc__)
    return found


def ensure_changeable(user: CurrentUser, claim_id: UUID) -> None:
    """Refuse early, before a body is read, what `lock_draft` would refuse later."""
    _changeable(user, find_claim(user, claim_id))


def lock_draft(user: CurrentUser, claim_id: UUID) -> Claim:
    """A claim to be changed in the open transaction, which every other change of it waits for.

    Raises `UnknownClaim`, `NotYours`, `NotDraft`.
    """
    claim = claims_of(user, using=ALIAS).select_for_update().filter(claim_id=claim_id).first()
    if claim is None:
        raise UnknownClaim(UnknownClaim.__doc__)
    return _changeable(user, claim)


def _changeable(user: CurrentUser, claim: Claim) -> Claim:
    if claim.created_by != user.user_id:
        raise NotYours(NotYours.__doc__)
    if claim.state != ClaimState.DRAFT:
        raise NotDraft(NotDraft.__doc__)
    return claim
