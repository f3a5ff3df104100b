"""Windows, lines, orphans and charges of consumption, to be read."""

from collections.abc import Sequence
from datetime import UTC
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from config.readonly_admin import (
    SECTIONS,
    Amount,
    Code,
    Filter,
    Link,
    Option,
    ReadOnlyAdmin,
    Span,
    State,
    Table,
    state_of,
)
from metering.consumption.ask_billing import DIMENSIONS
from metering.consumption.contracts import REFUSAL_MEANINGS
from metering.consumption.models import (
    ChargeState,
    ConsumptionCharge,
    ConsumptionLine,
    ConsumptionWindow,
    Orphan,
    OrphanReason,
)
from metering.otlp.models import DirtyWindow

SHOWN = 50
"""Lines and charges that the page of a window shows; the rest stands in their lists."""
CLEAN = State("confirmed", "summed up", "Its lines say what its events say.")
DIRTY = State("pending", "changed", "Events arrived since it was summed up; the next sweep does it again.")
OPEN = State("pending", "not yet", "It was never summed up.")


def _of_organization(pages: ReadOnlyAdmin, value: str) -> Option | None:
    return Option(value, f"organisation {value}", Q(organization_id=value)) if value else None


def _of_key(pages: ReadOnlyAdmin, value: str) -> Option | None:
    return Option(value, f"key {value}", Q(manager_key_id=value)) if value else None


def _of_cluster(pages: ReadOnlyAdmin, value: str) -> Option | None:
    return Option(value, f"cluster {value}", Q(cluster_id=value)) if value else None


def _states(pages: ReadOnlyAdmin) -> list[Option]:
    return [Option(state.value, state_of(ChargeState, state.value).label, Q(state=state)) for state in ChargeState]


def _reasons(pages: ReadOnlyAdmin) -> list[Option]:
    return [
        Option(reason.value, state_of(OrphanReason, reason.value).label, Q(orphan_reason=reason))
        for reason in OrphanReason
    ]


def used(row: ConsumptionLine) -> str:
    """What a line came to, in words."""
    if row.prompt_tokens is None:
        mean = int(row.utilization_micros or 0) / 1_000_000 / row.events if row.events else 0
        return f"{row.events:,} samples, {row.samples_above_threshold:,} above, mean {mean:.3f}"
    cached = f" ({row.cached_input_tokens:,} cached)" if row.cached_input_tokens else ""
    return f"{row.events:,} calls: {row.prompt_tokens:,} in{cached}, {row.completion_tokens:,} out"


class WindowAdmin(ReadOnlyAdmin):
    slug = "consumption-windows"
    label = "Windows"
    group = "Consumption"
    position = 90
    about = "Half-open windows of UTC time, latest first; each is summed up again whenever an event of it arrives."
    order = ("-window_start", "-kind", "-cluster_id")
    filters = (Filter("cluster", "Cluster", find=_of_cluster),)
    list_display = ("span", "kind", "cluster_id", "standing", "events", "revision", "aggregated_at")
    headings = {"cluster_id": "Cluster", "revision": "Times", "aggregated_at": "Last summed up"}
    fieldsets = (
        ("Window", {"fields": ("kind", "cluster_id", "window_start", "window_end", "standing")}),
        ("Summed up", {"fields": ("events", "revision", "aggregated_generation", "opened_at", "aggregated_at")}),
    )

    @admin.display(description="window")
    def span(self, row: ConsumptionWindow) -> Span:
        return Span(row.window_start, row.window_end)

    @admin.display(description="state")
    def standing(self, row: ConsumptionWindow) -> State:
        if not row.revision:
            return OPEN
        return DIRTY if getattr(row, "is_dirty", False) else CLEAN

    def prepare(self, rows: Sequence[ConsumptionWindow]) -> None:
        marks = DirtyWindow.objects.using(self.alias).filter(pk__in=[row.pk for row in rows])
        behind = {
            (mark.kind, mark.cluster_id, mark.window_start)
            for mark in marks
            if mark.marked_generation > mark.cleared_generation
        }
        for row in rows:
            row.is_dirty = (row.kind, row.cluster_id, row.window_start) in behind  # type: ignore[attr-defined]  # read by `standing`

    def find(self, request: HttpRequest, key: str) -> ConsumptionWindow:
        row: ConsumptionWindow = super().find(request, key)
        self.prepare([row])
        return row

    def title_of(self, row: ConsumptionWindow) -> str:
        start = row.window_start.astimezone(UTC)
        return f"Window of cluster {row.cluster_id} from {start:%Y-%m-%d %H:%M} UTC"

    def tables(self, row: ConsumptionWindow) -> list[Table]:
        own = {"kind": row.kind, "cluster_id": row.cluster_id, "window_start": row.window_start}
        lines = ConsumptionLine.objects.using(self.alias).filter(**own).order_by("line_id")[:SHOWN]
        charges = ConsumptionCharge.objects.using(self.alias).filter(**own).order_by("organization_id", "applies_to")
        note = f"The first {SHOWN}."
        return [
            self.sibling(ConsumptionCharge).table(list(charges[:SHOWN]), title=f"Charges. {note}", empty="None."),
            self.sibling(ConsumptionLine).table(list(lines), title=f"Lines. {note}", empty="None."),
        ]


class LineAdmin(ReadOnlyAdmin):
    slug = "consumption-lines"
    label = "Lines"
    group = "Consumption"
    position = 91
    about = "What was used in one window, by whom and of what; latest first."
    order = ("-line_id",)
    filters = (Filter("organization", "Organisation", find=_of_organization), Filter("key", "Key", find=_of_key))
    lookups = ("organization_id",)
    list_display = ("line_id", "window", "payer", "who", "applies_to", "came_to", "changed_at")
    headings = {"line_id": "Line", "applies_to": "Of what"}
    fieldsets = (
        ("Who", {"fields": ("payer", "source_mode", "manager_key_id", "stated_organization_id")}),
        ("Where", {"fields": ("cluster_id", "namespace", "robot_id", "cr_name")}),
        ("Of what", {"fields": ("kind", "applies_to", "provider")}),
        (
            "How much",
            {
                "fields": (
                    "events",
                    "prompt_tokens",
                    "completion_tokens",
                    "cached_input_tokens",
                    "samples_above_threshold",
                    "utilization_micros",
                    "utilization_max",
                )
            },
        ),
        ("Time", {"fields": ("window", "first_at", "changed_at", "released_at")}),
    )

    @admin.display(description="window")
    def window(self, row: ConsumptionLine) -> Link:
        pages = self.sibling(ConsumptionWindow)
        return Link(row.window_start, pages.url_of_key(row.kind, row.cluster_id, row.window_start))

    @admin.display(description="charged to")
    def payer(self, row: ConsumptionLine) -> Code | State:
        if row.organization_id is not None:
            return Code(row.organization_id)
        return state_of(OrphanReason, row.orphan_reason or "")

    @admin.display(description="who")
    def who(self, row: ConsumptionLine) -> Code:
        if row.manager_key_id is not None:
            return Code(f"key {row.manager_key_id}")
        return Code(" / ".join(part for part in (row.namespace, row.robot_id, row.cr_name) if part))

    @admin.display(description="came to")
    def came_to(self, row: ConsumptionLine) -> str:
        return used(row)

    def title_of(self, row: ConsumptionLine) -> str:
        return f"Line {row.line_id}: {row.applies_to}"


class OrphanAdmin(LineAdmin):
    slug = "orphans"
    label = "Orphans"
    position = 92
    about = (
        "Usage that nobody is charged for, with its amounts. That of unknown keys is released when the key is learnt."
    )
    is_part = True
    filters = (Filter("reason", "Why", _reasons), Filter("key", "Key", find=_of_key))
    lookups = ("manager_key_id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(orphan_reason__isnull=False)


class ChargeAdmin(ReadOnlyAdmin):
    slug = "consumption-charges"
    label = "Charges"
    group = "Consumption"
    position = 93
    about = "What each organisation owes for a window, and how far billing has posted it; latest first."
    order = ("-consumption_charge_id",)
    filters = (Filter("state", "State", _states), Filter("organization", "Organisation", find=_of_organization))
    lookups = ("charge_id",)
    list_display = (
        "consumption_charge_id",
        "window",
        "organization_id",
        "applies_to",
        "state",
        "why",
        "amount",
        "generation",
        "changed_at",
    )
    headings = {
        "consumption_charge_id": "Charge",
        "organization_id": "Organisation",
        "applies_to": "Of what",
        "billing_account_id": "Account",
        "price_book_ref": "Price book",
    }
    fieldsets = (
        (
            "Charge",
            {"fields": ("state", "why", "refusal_detail", "organization_id", "applies_to", "kind", "cluster_id")},
        ),
        ("Time", {"fields": ("window", "window_end", "changed_at", "ask_after", "answered_at")}),
        ("At billing", {"fields": ("at_billing", "amount", "billing_account_id", "price_book_ref")}),
        ("Generations", {"fields": ("generation", "posted_generation", "posted_sha256", "standing_generation")}),
    )

    @admin.display(description="window")
    def window(self, row: ConsumptionCharge) -> Link:
        pages = self.sibling(ConsumptionWindow)
        return Link(row.window_start, pages.url_of_key(row.kind, row.cluster_id, row.window_start))

    @admin.display(description="why")
    def why(self, row: ConsumptionCharge) -> State | None:
        if row.refusal is None:
            return None
        return State("failed", row.refusal.replace("_", " "), dict(REFUSAL_MEANINGS).get(row.refusal, ""))  # type: ignore[call-overload]  # any text may stand there

    @admin.display(description="charged")
    def amount(self, row: ConsumptionCharge) -> Amount | None:
        return None if row.posted_generation is None else Amount(int(row.amount_picos), row.currency or "")

    @admin.display(description="charge")
    def at_billing(self, row: ConsumptionCharge) -> Link | Code | None:
        if row.charge_id is None:
            return None
        if row.posted_generation is None:
            return Code(row.charge_id)
        return Link(Code(row.charge_id), SECTIONS["billing"].row_url("telemetry-charges", row.charge_id))

    def title_of(self, row: ConsumptionCharge) -> str:
        return f"Charge of {row.organization_id} for {row.applies_to}"

    def tables(self, row: ConsumptionCharge) -> list[Table]:
        cells = tuple((Code(dimension), int(getattr(row, column))) for column, dimension in DIMENSIONS.items())
        return [Table("Used", ("Charge dimension", "Units"), cells)]


SECTIONS["telemetry"].register(ConsumptionWindow, WindowAdmin)
SECTIONS["telemetry"].register(ConsumptionLine, LineAdmin)
SECTIONS["telemetry"].register(Orphan, OrphanAdmin)
SECTIONS["telemetry"].register(ConsumptionCharge, ChargeAdmin)
