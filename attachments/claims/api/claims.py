"""Claims and items: each view is one call and one answer."""

from typing import Annotated, Any
from uuid import UUID

from django.db.models import Prefetch
from django.http import HttpRequest
from ninja import Query, Router, Status

from attachments.claims import delete, drafts
from attachments.claims.access import claims_of
from attachments.claims.api.schemas import (
    ClaimListed,
    ClaimPage,
    ClaimRead,
    ClaimToBegin,
    ClaimToChange,
    ItemRead,
    ItemToAdd,
    ItemToChange,
)
from attachments.claims.errors import UnknownClaim
from attachments.claims.models import Attachment, Claim, ClaimItem
from attachments.http.current_user import CurrentUser, current_user
from attachments.http.metrics import Written, written
from attachments.http.people import DOORS
from attachments.http.problems import ProblemDetails

PAGE = 50
MOST_PER_PAGE = 200
REFUSALS: dict[Any, Any] = dict.fromkeys((400, 401, 403, 404, 409, 503), ProblemDetails)

router = Router(auth=DOORS, tags=["claims"], by_alias=True)


@router.get("", response={200: ClaimPage, **REFUSALS}, operation_id="listClaims")
def list_claims(
    request: HttpRequest,
    before: Annotated[UUID | None, Query(description="Only claims that were begun before this one.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_PER_PAGE)] = PAGE,
) -> Any:
    """The claims that you may see, newest first."""
    rows = claims_of(current_user(request)).order_by("-claim_id")
    found = list((rows if before is None else rows.filter(claim_id__lt=before))[: limit + 1])
    more = len(found) > limit
    return {"claims": found[:limit], "next": found[limit - 1].claim_id if more else None}


@router.post("", response={201: ClaimListed, **REFUSALS}, operation_id="beginClaim")
def begin_claim(request: HttpRequest, sent: ClaimToBegin) -> Any:
    """Begin a claim as a draft."""
    return Status(201, drafts.begin_claim(current_user(request), number=sent.number, title=sent.title))


@router.get("/{uuid:claim_id}", response={200: ClaimRead, **REFUSALS}, operation_id="readClaim")
def read_claim(request: HttpRequest, claim_id: UUID) -> Any:
    """A claim with its items and their attachments."""
    return _whole(current_user(request), claim_id)


@router.patch("/{uuid:claim_id}", response={200: ClaimListed, **REFUSALS}, operation_id="changeClaim")
def change_claim(request: HttpRequest, claim_id: UUID, sent: ClaimToChange) -> Any:
    """Give a draft another title."""
    return drafts.change_claim(current_user(request), claim_id, title=sent.title)


@router.post("/{uuid:claim_id}/submit", response={200: ClaimListed, **REFUSALS}, operation_id="submitClaim")
def submit_claim(request: HttpRequest, claim_id: UUID) -> Any:
    """Submit a draft: from then on nothing of it changes."""
    return drafts.submit_claim(current_user(request), claim_id)


@router.delete("/{uuid:claim_id}", response={204: None, **REFUSALS}, operation_id="deleteClaim")
def delete_claim(request: HttpRequest, claim_id: UUID) -> Any:
    """Delete a draft with its items, their attachments and files."""
    delete.delete_claim(current_user(request), claim_id)
    written(Written.CLAIM_DELETED)
    return Status(204, None)


@router.post("/{uuid:claim_id}/items", response={201: ItemRead, **REFUSALS}, operation_id="addItem")
def add_item(request: HttpRequest, claim_id: UUID, sent: ItemToAdd) -> Any:
    """Add an expense to a draft."""
    added = drafts.add_item(
        current_user(request),
        claim_id,
        description=sent.description,
        amount_minor=sent.amount_minor,
        currency=sent.currency,
    )
    return Status(201, added)


@router.patch("/{uuid:claim_id}/items/{uuid:item_id}", response={200: ItemRead, **REFUSALS}, operation_id="changeItem")
def change_item(request: HttpRequest, claim_id: UUID, item_id: UUID, sent: ItemToChange) -> Any:
    """Change an expense of a draft."""
    values = sent.model_dump(exclude_none=True)
    return drafts.change_item(current_user(request), claim_id, item_id, values=values)


@router.delete("/{uuid:claim_id}/items/{uuid:item_id}", response={204: None, **REFUSALS}, operation_id="deleteItem")
def delete_item(request: HttpRequest, claim_id: UUID, item_id: UUID) -> Any:
    """Delete an expense of a draft with its attachments and their files."""
    delete.delete_item(current_user(request), claim_id, item_id)
    written(Written.ITEM_DELETED)
    return Status(204, None)


def _whole(user: CurrentUser, claim_id: UUID) -> Claim:
    attachments = Prefetch("attachments", Attachment.objects.order_by("attachment_id"))
    items = Prefetch("items", ClaimItem.objects.order_by("item_id").prefetch_related(attachments))
    claim = claims_of(user).filter(claim_id=claim_id).prefetch_related(items).first()
    if claim is None:
        raise UnknownClaim(UnknownClaim.__doc__)
    return claim
