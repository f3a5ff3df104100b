"""Claims, attachments, uploads, members and tokens, to be read. No page reads a content, a token's hash or an identity.

What a file is called is shown on the page of its attachment alone, and never in a list.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from attachments.claims.models import AccessToken, Attachment, AttachmentUpload, Claim, ClaimItem, Membership
from config.readonly_admin import SECTIONS, Code, Filter, Link, Option, ReadOnlyAdmin, Table

GROUP = "Claims"
MOST_SHOWN = 100
"""Items and attachments that the page of a claim shows."""


def _of_claim(pages: ReadOnlyAdmin, value: str) -> Option | None:
    try:
        return Option(value, f"claim {value}", Q(item__claim_id=UUID(value)))
    except ValueError:
        return None


def _of_tenant(pages: ReadOnlyAdmin, value: str) -> Option | None:
    kind, colon, name = value.partition(":")
    return Option(value, value, Q(tenant_kind=kind, tenant_id=name)) if colon and name else None


class _Pages(ReadOnlyAdmin):
    """What is deferred is read by no page, not even by that of a row."""

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Any]":
        return super().get_queryset(request).defer(*self.deferred)


class ClaimAdmin(ReadOnlyAdmin):
    slug = "claims"
    label = "Claims"
    group = GROUP
    position = 10
    about = "Claims of all tenants, newest first. A draft changes and may be deleted; what is submitted stays."
    order = ("-claim_id",)
    filters = (Filter("tenant", "Tenant", find=_of_tenant),)
    lookups = ("claim_id",)
    list_display = ("claim_id", "state", "tenant", "created_by", "created_at", "submitted_at")
    headings = {"claim_id": "Claim", "created_by": "Account"}
    fieldsets = (
        ("Claim", {"fields": ("number", "title", "state", "tenant", "created_by")}),
        ("Time", {"fields": ("created_at", "submitted_at")}),
    )

    @admin.display(description="tenant")
    def tenant(self, row: Claim) -> Link:
        ref = f"{row.tenant_kind}:{row.tenant_id}"
        return Link(Code(ref), self.list_url(tenant=ref))

    def tables(self, row: Claim) -> list[Table]:
        items = ClaimItem.objects.using(self.alias).filter(claim_id=row.claim_id).order_by("item_id")[:MOST_SHOWN]
        attachments = self.sibling(Attachment)
        stored = Attachment.objects.using(self.alias).filter(item__claim_id=row.claim_id)
        stored = stored.select_related("item").defer(*AttachmentAdmin.deferred)
        return [
            Table(
                "Items",
                ("Item", "Description", "Amount in minor units", "Currency"),
                tuple((Code(str(one.item_id)), one.description, one.amount_minor, one.currency) for one in items),
                "It has no item.",
            ),
            attachments.table(
                list(stored.order_by("item_id", "attachment_id")[:MOST_SHOWN]),
                title="Attachments",
                empty="It has no attachment.",
            ),
        ]


class AttachmentAdmin(_Pages):
    slug = "attachments"
    label = "Attachments"
    group = GROUP
    position = 11
    about = "Attachments of claims, newest first: ids, lengths and digests. Contents are read through the API alone."
    order = ("-attachment_id",)
    filters = (Filter("claim", "Claim", find=_of_claim),)
    lookups = ("attachment_id",)
    deferred = ("origin_sha256",)
    related = ("item",)
    list_display = ("attachment_id", "of_claim", "media_type", "size_bytes", "stored_at")
    headings = {"attachment_id": "Attachment", "size_bytes": "Bytes", "stored_at": "Content since"}
    fieldsets = (
        ("Attachment", {"fields": ("name", "media_type", "of_claim", "item_key")}),
        ("Content", {"fields": ("stored_under", "size_bytes", "digest")}),
        ("Time", {"fields": ("created_at", "stored_at")}),
    )

    @admin.display(description="claim")
    def of_claim(self, row: Attachment) -> Link:
        key = row.item.claim_id
        return Link(Code(str(key), short=True), self.sibling(Claim).url_of_key(key))

    @admin.display(description="item")
    def item_key(self, row: Attachment) -> Code:
        return Code(str(row.item_id))

    @admin.display(description="stored under")
    def stored_under(self, row: Attachment) -> Code:
        return Code(str(row.content_id))

    @admin.display(description="SHA-256")
    def digest(self, row: Attachment) -> Code:
        return Code(row.content_sha256)


class UploadAdmin(ReadOnlyAdmin):
    slug = "uploads"
    label = "Uploads"
    group = GROUP
    position = 12
    about = (
        "What was uploaded, once per identity, also of what was deleted since. What is metered is counted by billing."
    )
    order = ("-uploaded_at", "-upload_sha256")
    filters = (Filter("tenant", "Tenant", find=_of_tenant),)
    lookups = ("upload_sha256",)
    list_display = ("upload_sha256", "tenant", "size_bytes", "is_metered", "uploaded_at")
    headings = {"upload_sha256": "Identity, hashed", "size_bytes": "Bytes", "is_metered": "Metered"}
    fieldsets = (
        ("Upload", {"fields": ("tenant", "claim_id", "item_id", "size_bytes", "digest", "is_metered")}),
        ("Time", {"fields": ("uploaded_at",)}),
    )

    @admin.display(description="tenant")
    def tenant(self, row: AttachmentUpload) -> Code:
        return Code(f"{row.tenant_kind}:{row.tenant_id}")

    @admin.display(description="SHA-256")
    def digest(self, row: AttachmentUpload) -> Code:
        return Code(row.content_sha256)


class MembershipAdmin(ReadOnlyAdmin):
    slug = "members"
    label = "Members"
    group = GROUP
    position = 13
    about = "Which accounts of the operators' login belong to which tenants. `manage.py members` changes it."
    order = ("-membership_id",)
    lookups = ("membership_id",)
    list_display = ("membership_id", "user_id", "tenant", "role", "joined_at", "ended_at")
    headings = {"membership_id": "Membership", "user_id": "Account"}
    fieldsets = (("Membership", {"fields": ("user_id", "tenant", "role", "joined_at", "ended_at")}),)

    @admin.display(description="tenant")
    def tenant(self, row: Membership) -> Code:
        return Code(f"{row.tenant_kind}:{row.tenant_id}")


class AccessTokenAdmin(_Pages):
    slug = "access-tokens"
    label = "Access tokens"
    group = GROUP
    position = 14
    about = "Tokens with which programs of members call the API. `manage.py access_tokens` makes and revokes them."
    order = ("-token_id",)
    lookups = ("token_id",)
    deferred = ("token_sha256",)
    related = ("membership",)
    list_display = ("token_id", "whose", "issued_at", "expires_at", "revoked_at")
    headings = {"token_id": "Token"}
    fieldsets = (("Token", {"fields": ("whose", "issued_at", "expires_at", "revoked_at")}),)

    @admin.display(description="member")
    def whose(self, row: AccessToken) -> Link:
        key = row.membership_id
        return Link(Code(str(key), short=True), self.sibling(Membership).url_of_key(key))


PAGES: Sequence[tuple[Any, type[ReadOnlyAdmin]]] = (
    (Claim, ClaimAdmin),
    (Attachment, AttachmentAdmin),
    (AttachmentUpload, UploadAdmin),
    (Membership, MembershipAdmin),
    (AccessToken, AccessTokenAdmin),
)
for model, pages in PAGES:
    SECTIONS["attachments"].register(model, pages)
