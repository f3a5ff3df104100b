"""Clusters, tokens, managed keys and audit, to be read. No page reads the column in which a token's hash stands."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from config.readonly_admin import SECTIONS, Code, Filter, Link, Option, ReadOnlyAdmin, State, Table, state_of
from metering.clusters.models import (
    AdminAuditEntry,
    AdministratorToken,
    Cluster,
    ManagedKey,
    OtlpToken,
    TokenState,
)
from metering.clusters.tokens_of import is_accepted

LATEST = 20
"""Tokens and audit entries that the page of a cluster shows."""
ACCEPTED = State("active", "Accepted", "The receiver lets it in")
REFUSED = State("ended", "Refused", "The receiver answers 401")


def _of_cluster(pages: ReadOnlyAdmin, value: str) -> Option | None:
    if not (value.isascii() and value.isdecimal() and len(value) < len(str(2**63))):
        return None
    return Option(value, f"cluster {value}", Q(cluster_id=int(value)))


def _of_organization(pages: ReadOnlyAdmin, value: str) -> Option | None:
    return Option(value, f"organisation {value}", Q(organization_id=value)) if value else None


class ClusterAdmin(ReadOnlyAdmin):
    slug = "clusters"
    label = "Clusters"
    group = "Telemetry"
    position = 60
    about = "Clusters that send telemetry, and what is set for each beside what is set for all."
    order = ("cluster_id",)
    lookups = ("name",)
    list_display = ("cluster_id", "name", "token_mode", "sink", "rate", "arrivals", "created_at")
    fieldsets = (("Cluster", {"fields": ("name", "token_mode", "sink", "rate", "arrivals", "created_at")}),)
    headings = {"cluster_id": "Cluster", "token_mode": "Mode of its next token"}

    @admin.display(description="rate")
    def rate(self, row: Cluster) -> str | None:
        return f"{row.rate_per_second}/s, burst {row.rate_burst}" if row.rate_per_second else None

    @admin.display(description="events")
    def arrivals(self, row: Cluster) -> Link:
        return Link("what it sent", reverse("telemetry:senders_row", args=[row.cluster_id]))

    def title_of(self, row: Cluster) -> str:
        return f"Cluster {row.cluster_id}, {row.name}"

    def tables(self, row: Cluster) -> list[Table]:
        tokens, audit = self.sibling(OtlpToken), self.sibling(AdminAuditEntry)
        own = tokens.get_queryset_for(row.cluster_id).order_by("-token_id")[:LATEST]  # type: ignore[attr-defined]  # TokenAdmin
        acts = (
            AdminAuditEntry.objects.using(self.alias).filter(cluster_id=row.cluster_id).order_by("-entry_id")[:LATEST]
        )
        return [
            tokens.table(list(own), title="Latest tokens", empty="It has no token yet."),
            audit.table(list(acts), title="Latest in its audit"),
        ]

    def beside_row(self, row: Cluster, request: HttpRequest) -> dict[str, Any]:
        pages = self.sibling(AdminAuditEntry)
        return {"more": ("All audit entries of this cluster", pages.list_url(cluster=str(row.cluster_id)))}


class TokenAdmin(ReadOnlyAdmin):
    slug = "otlp-tokens"
    label = "Tokens"
    group = "Telemetry"
    position = 61
    about = "Tokens with which clusters send, newest first. A token itself is seen once, by whoever rotated."
    order = ("-token_id",)
    filters = (Filter("cluster", "Cluster", find=_of_cluster),)
    lookups = ("token_id",)
    deferred = ("token_sha256",)
    list_display = ("token_id", "of_cluster", "mode", "state", "accepted", "issued_at", "expires_at")
    fieldsets = (
        ("Token", {"fields": ("of_cluster", "mode", "state", "accepted")}),
        ("Time", {"fields": ("issued_at", "handed_over_at", "superseded_at", "expires_at", "revoked_at")}),
    )
    headings = {"token_id": "Token", "accepted": "Now"}

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer(*self.deferred)

    def get_queryset_for(self, cluster_id: int) -> Any:
        """The tokens of one cluster, without their hashes."""
        return OtlpToken.objects.using(self.alias).filter(cluster_id=cluster_id).defer(*self.deferred)

    @admin.display(description="cluster")
    def of_cluster(self, row: OtlpToken) -> Link:
        return Link(Code(str(row.cluster_id)), self.sibling(Cluster).url_of_key(row.cluster_id))

    def accepted(self, row: OtlpToken) -> State:
        return ACCEPTED if is_accepted(row, now=timezone.now()) else REFUSED

    def title_of(self, row: OtlpToken) -> str:
        return f"{state_of(TokenState, row.state).label} token {row.token_id}"

    def tables(self, row: OtlpToken) -> list[Table]:
        acts = AdminAuditEntry.objects.using(self.alias).filter(token_id=row.token_id).order_by("-entry_id")
        return [self.sibling(AdminAuditEntry).table(list(acts[:LATEST]), title="What was done to it")]


class ManagedKeyAdmin(ReadOnlyAdmin):
    slug = "managed-keys"
    label = "Managed keys"
    group = "Telemetry"
    position = 62
    about = "Keys of the LLM gateway and the organisation that pays for what is used with each. It never changes."
    order = ("manager_key_id",)
    lookups = ("manager_key_id",)
    filters = (
        Filter(
            "organization",
            "Organisation",
            find=_of_organization,
        ),
    )
    list_display = ("manager_key_id", "payer", "label_text", "known_since")
    fieldsets = (("Managed key", {"fields": ("payer", "label_text", "known_since")}),)
    headings = {"manager_key_id": "Key"}

    @admin.display(description="organisation")
    def payer(self, row: ManagedKey) -> Link:
        return Link(Code(row.organization_id), self.list_url(organization=row.organization_id))

    @admin.display(description="label")
    def label_text(self, row: ManagedKey) -> str | None:
        return row.label or None

    def title_of(self, row: ManagedKey) -> str:
        return f"Managed key {row.manager_key_id}"


class AuditAdmin(ReadOnlyAdmin):
    slug = "audit"
    label = "Audit"
    group = "Telemetry"
    position = 63
    about = "What administrators did to clusters, tokens and keys, latest first. Nothing here ever changes."
    order = ("-entry_id",)
    filters = (Filter("cluster", "Cluster", find=_of_cluster),)
    list_display = ("at", "action", "actor", "through", "of_cluster", "of_token", "said")
    fieldsets = (
        ("Act", {"fields": ("action", "of_cluster", "of_token", "said")}),
        ("By", {"fields": ("actor", "through", "at")}),
    )

    @admin.display(description="cluster")
    def of_cluster(self, row: AdminAuditEntry) -> Link | None:
        if row.cluster_id is None:
            return None
        return Link(Code(str(row.cluster_id)), self.sibling(Cluster).url_of_key(row.cluster_id))

    @admin.display(description="token")
    def of_token(self, row: AdminAuditEntry) -> Link | None:
        if row.token_id is None:
            return None
        pages = self.sibling(OtlpToken if row.cluster_id else AdministratorToken)
        return Link(Code(str(row.token_id), short=True), pages.url_of_key(row.token_id))

    @admin.display(description="detail")
    def said(self, row: AdminAuditEntry) -> str | None:
        return row.detail or None


class AdministratorTokenAdmin(ReadOnlyAdmin):
    slug = "administrator-tokens"
    label = "Administrators' tokens"
    group = "Telemetry"
    position = 64
    about = "Tokens with which platform administrators call the token API. The account's permission decides, not these."
    order = ("-token_id",)
    lookups = ("token_id",)
    deferred = ("token_sha256",)
    list_display = ("token_id", "account_name", "issued_at", "expires_at", "revoked_at")
    fieldsets = (("Token", {"fields": ("account_name", "issued_at", "expires_at", "revoked_at")}),)
    headings = {"token_id": "Token", "account_name": "Account"}

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer(*self.deferred)

    def title_of(self, row: AdministratorToken) -> str:
        return f"Token {row.token_id} of {row.account_name}"


PAGES: Sequence[tuple[Any, type[ReadOnlyAdmin]]] = (
    (Cluster, ClusterAdmin),
    (OtlpToken, TokenAdmin),
    (ManagedKey, ManagedKeyAdmin),
    (AdminAuditEntry, AuditAdmin),
    (AdministratorToken, AdministratorTokenAdmin),
)
for model, pages in PAGES:
    SECTIONS["metering"].register(model, pages)
