"""Begin, change and submit claims and their items. Nothing here touches a file or asks for quota."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from attachments.claims.access import find_item, lock_draft
from attachments.claims.errors import NothingToSubmit, TooMany, translate
from attachments.claims.members import ALIAS
from attachments.claims.models import Claim, ClaimItem, ClaimState
from attachments.http.current_user import CurrentUser

MOST_ITEMS = 500
"""Of one claim: it is read, answered and deleted as a whole."""


def begin_claim(user: CurrentUser, *, number: str, title: str) -> Claim:
    """A new draft of the caller. Raises `NumberTaken`, `InvalidValue`."""
    claim = Claim(
        claim_id=uuid7(),
        tenant_kind=user.tenant_kind,
        tenant_id=user.tenant_id,
        created_by=user.user_id,
        number=number,
        title=title,
    )
    with _changes():
        claim.save(using=ALIAS, force_insert=True)
    claim.refresh_from_db(using=ALIAS)
    return claim


def change_claim(user: CurrentUser, claim_id: UUID, *, title: str) -> Claim:
    """Give a draft another title. Raises what `lock_draft` raises, `InvalidValue`."""
    with _changes():
        claim = lock_draft(user, claim_id)
        claim.title = title
        claim.save(using=ALIAS, update_fields=["title"])
    return claim


def submit_claim(user: CurrentUser, claim_id: UUID) -> Claim:
    """From now on nothing of it changes. Raises what `lock_draft` raises, `NothingToSubmit`."""
    with _changes():
        claim = lock_draft(user, claim_id)
        if not ClaimItem.objects.using(ALIAS).filter(claim_id=claim_id).exists():
            raise NothingToSubmit(NothingToSubmit.__doc__)
        Claim.objects.using(ALIAS).filter(claim_id=claim_id).update(state=ClaimState.SUBMITTED, submitted_at=Now())
    claim.refresh_from_db(using=ALIAS)
    return claim


def add_item(user: CurrentUser, claim_id: UUID, *, description: str, amount_minor: int, currency: str) -> ClaimItem:
    """A new item of a draft. Raises what `lock_draft` raises, `TooMany`, `InvalidValue`."""
    item = ClaimItem(
        item_id=uuid7(), claim_id=claim_id, description=description, amount_minor=amount_minor, currency=currency
    )
    with _changes():
        lock_draft(user, claim_id)
        if ClaimItem.objects.using(ALIAS).filter(claim_id=claim_id).count() >= MOST_ITEMS:
            raise TooMany(f"A claim has at most {MOST_ITEMS} items. {TooMany.__doc__}")
        item.save(using=ALIAS, force_insert=True)
    item.refresh_from_db(using=ALIAS)
    return item


def change_item(user: CurrentUser, claim_id: UUID, item_id: UUID, *, values: dict[str, Any]) -> ClaimItem:
    """Change what `values` names of an item. Raises what `lock_draft` raises, `UnknownItem`, `InvalidValue`."""
    with _changes():
        lock_draft(user, claim_id)
        item = find_item(user, claim_id, item_id, using=ALIAS)
        for name, value in values.items():
            setattr(item, name, value)
        if values:
            item.save(using=ALIAS, update_fields=list(values))
    return item


@contextmanager
def _changes() -> Iterator[None]:
    try:
        with transaction.atomic(using=ALIAS, durable=True):
            yield
    except DatabaseError as error:
        translate(error)
