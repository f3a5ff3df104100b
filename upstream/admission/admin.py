"""Admitted runs and refused operations, to be read."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

from config.readonly_admin import SECTIONS, Amount, Code, Document, Link, ReadOnlyAdmin, Reference, key_text
from upstream.admission.models import AdmissionOutcome, Run


class OutcomeAdmin(ReadOnlyAdmin):
    slug = "outcomes"
    label = "Outcomes"
    group = "Admission"
    position = 8
    about = (
        "The one end of each operation: admitted or refused. What left nothing behind (no funds, no price) is not here."
    )
    order = ("-operation_id",)
    lookups = ("operation_id",)
    related = ("admission_refusal",)
    list_display = ("operation_id", "state", "run_link", "reason", "decided_at")
    fieldsets = (
        ("Outcome", {"fields": ("state", "decided_at", "run_link", "request_sha256")}),
        ("Refusal", {"fields": ("reason", "refusal")}),
    )

    @admin.display(description="run")
    def run_link(self, row: AdmissionOutcome) -> Link | None:
        return Link(Code(row.run_id), self.sibling(Run).url_of_key(row.run_id)) if row.run_id else None

    @admin.display(description="reason")
    def reason(self, row: AdmissionOutcome) -> str | None:
        return row.admission_refusal.reason if row.admission_refusal else None

    @admin.display(description="four-tuple")
    def refusal(self, row: AdmissionOutcome) -> Reference | None:
        found = row.admission_refusal
        if found is None:
            return None
        return Reference(
            found.admission_refusal_ref, found.schema_version, found.digest_algorithm_version, found.digest
        )

    def title_of(self, row: AdmissionOutcome) -> str:
        return f"Outcome of {row.operation_id}"


class RunAdmin(ReadOnlyAdmin):
    slug = "runs"
    label = "Runs"
    group = "Admission"
    position = 7
    about = "Admitted runs, each with its manifest, its wallet reservation and both its events."
    order = ("-run_id",)
    lookups = ("run_id",)
    related = ("wallet_reservation", "manifest")
    deferred = ("manifest__candidate",)
    list_display = ("run_id", "tenant", "operation_code", "held", "admitted_at")
    headings = {"run_event": "run.created", "wallet_event": "wallet.reserved", "admitted_at": "Admitted"}
    fieldsets = (
        ("Run", {"fields": ("admitted_at", "tenant", "workspace_id", "project_id", "operation_code", "timeline")}),
        ("Wallet reservation", {"fields": ("reservation", "held", "account")}),
        ("Events", {"fields": ("run_event", "wallet_event")}),
        ("Admission manifest", {"fields": ("reference",)}),
    )

    @admin.display(description="tenant")
    def tenant(self, row: Run) -> Any:
        return [row.tenant_kind, Code(row.tenant_id)]

    @admin.display(description="operation")
    def operation_code(self, row: Run) -> Link:
        return Link(Code(row.operation_id), self.sibling(AdmissionOutcome).url_of_key(row.operation_id))

    @admin.display(description="timeline")
    def timeline(self, row: Run) -> Link:
        return Link("find this run in operations", f"{reverse('admin:search')}?q={row.run_id}")

    @admin.display(description="held")
    def held(self, row: Run) -> Amount:
        return Amount(int(row.wallet_reservation.hold_amount_picos), row.wallet_reservation.currency)

    @admin.display(description="reservation")
    def reservation(self, row: Run) -> Link:
        key = row.billing_reservation_id
        return Link(Code(key), reverse("billing:reservations_row", args=[key_text(key)]))

    @admin.display(description="billing account")
    def account(self, row: Run) -> Link:
        key = row.billing_account_id
        return Link(Code(key), reverse("billing:accounts_row", args=[key_text(key)]))

    @admin.display(description="run.created")
    def run_event(self, row: Run) -> Link:
        return Link(row.run_created_event_id, reverse("core:events_row", args=[str(row.run_created_event_id)]))

    @admin.display(description="wallet.reserved")
    def wallet_event(self, row: Run) -> Link:
        event = row.wallet_reservation.wallet_reserved_event_id
        return Link(event, reverse("core:events_row", args=[str(event)]))

    @admin.display(description="four-tuple")
    def reference(self, row: Run) -> Reference:
        manifest = row.manifest
        return Reference(
            manifest.run_admission_manifest_ref,
            manifest.schema_version,
            manifest.digest_algorithm_version,
            manifest.digest,
        )

    def title_of(self, row: Run) -> str:
        return f"Run {row.run_id}"

    def beside_row(self, row: Run, request: HttpRequest) -> dict[str, Any]:
        text = row.manifest.candidate
        size = len(text.encode())
        return {"documents": [("Admission manifest", f"canonical, {size:,} bytes", Document(text), text)]}


SECTIONS["core"].register(Run, RunAdmin)
SECTIONS["core"].register(AdmissionOutcome, OutcomeAdmin)
