"""A person files a receipt: uploaded, sent again, replaced, one too large for the quota, one removal rolled back."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from attachments.claims.members import Tenant, join
from attachments.claims.models import Attachment, Claim, MembershipRole
from attachments.claims.tokens import mint
from attachments.claims.upload import content_path
from attachments.files.stage import StagedFiles
from billing.commercial import hooks
from config.replay.calls import Answer, Api, NoAnswer

ACCOUNT = "demo-employee"
LIFE = timedelta(minutes=10)
RECEIPT, BETTER_SCAN, TOO_LARGE = 20_000, 24_000, 40_000
"""Bytes; the demo's plan accepts 65,536 in a month."""


class _ChangedMyMind(Exception):
    """Raised to roll back."""


@dataclass(frozen=True, slots=True)
class _Filed:
    api: Api
    claim_id: UUID
    item_id: UUID

    @property
    def attachments(self) -> str:
        return f"/claims/{self.claim_id}/items/{self.item_id}/attachments"


def file_receipts(*, url: str, tenant_id: str, month: str) -> dict[str, Any]:
    """The status of every answer by what was done, and whether the file stood after refusal and rollback.

    Raises `NoAnswer`, also when claims cannot even be begun.
    """
    filed = _filed(Api(url, {"Authorization": f"Bearer {_token(tenant_id)}"}), month)
    uploaded = _upload(filed, "receipt", RECEIPT)
    again = _upload(filed, "receipt", RECEIPT)
    attachment_id = UUID(_found(uploaded)["attachmentId"])
    replaced = _upload(filed, "better-scan", BETTER_SCAN, replaces=attachment_id)
    before = _content(filed, attachment_id)
    refused = _upload(filed, "too-large", TOO_LARGE, replaces=attachment_id)
    stands = _content(filed, attachment_id) == before
    _remove_and_change_mind(filed, attachment_id)
    return {
        "uploaded": [uploaded.status],
        "again": [again.status],
        "replaced": [replaced.status],
        "tooLarge": [refused.status],
        "stoodAfterRefusal": stands,
        "stoodAfterRollback": _content(filed, attachment_id) == before,
    }


def _token(tenant_id: str) -> str:
    account, made = User.objects.using("default").get_or_create(username=ACCOUNT)
    if made:
        account.set_unusable_password()
        account.save(using="default")
    tenant = Tenant("organization", tenant_id)
    join(user_id=account.pk, tenant=tenant, role=MembershipRole.MEMBER)
    return mint(user_id=account.pk, tenant=tenant, life=LIFE).text


def _filed(api: Api, month: str) -> _Filed:
    """This month's claim with its one item, begun now or before."""
    number = f"DEMO-{month}"
    begun = api.send("POST", "/claims", {"number": number, "title": "Conference in Lisbon"})
    claims = _found(api.call("GET", "/claims"))["claims"]
    claim_id = next((UUID(claim["claimId"]) for claim in claims if claim["number"] == number), None)
    if claim_id is None:
        raise NoAnswer(f"No claim could be begun: {begun.status} {begun.body[:300]!r}")
    items = _found(api.call("GET", f"/claims/{claim_id}"))["items"]
    if not items:
        dinner = {"description": "Dinner", "amountMinor": 4250, "currency": "EUR"}
        items = [_found(api.send("POST", f"/claims/{claim_id}/items", dinner))]
    return _Filed(api, claim_id, UUID(items[0]["itemId"]))


def _upload(filed: _Filed, what: str, size: int, *, replaces: UUID | None = None) -> Answer:
    content = (what.encode() * size)[:size]
    method, path = ("POST", filed.attachments) if replaces is None else ("PUT", f"{filed.attachments}/{replaces}")
    request_id = f"demo/{filed.claim_id}/{what}"
    return filed.api.upload(method, path, name=f"{what}.pdf", content=content, request_id=request_id)


def _content(filed: _Filed, attachment_id: UUID) -> bytes:
    return filed.api.call("GET", f"{filed.attachments}/{attachment_id}/content").body


def _remove_and_change_mind(filed: _Filed, attachment_id: UUID) -> None:
    """Take the file away inside a transaction that then rolls back, as a failure in business code would."""
    claim = Claim.objects.using("attachments").get(claim_id=filed.claim_id)
    attachment = Attachment.objects.using("attachments").get(attachment_id=attachment_id)
    path = content_path(claim, filed.item_id, attachment.content_id)
    with suppress(_ChangedMyMind), hooks.business_transaction(using="attachments") as work:
        StagedFiles(work).remove(path)
        raise _ChangedMyMind


def _found(answer: Answer) -> Any:
    if answer.status not in (200, 201):
        raise NoAnswer(f"The API answered {answer.status} {answer.body[:300]!r}")
    return answer.json()
