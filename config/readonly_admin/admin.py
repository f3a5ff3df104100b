"""The one base class of every list and every row that an operator sees."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib.admin import ModelAdmin
from django.contrib.admin.utils import flatten_fieldsets, label_for_field, quote, unquote
from django.core.exceptions import BadRequest, FieldDoesNotExist, PermissionDenied, ValidationError
from django.db.models import Field, Model, Q, QuerySet, UUIDField
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path, reverse

from config.readonly_admin import keyset
from config.readonly_admin.values import Link, Table, shown

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Option:
    """One choice of a filter: an indexed condition, and the key order that the same index serves."""

    value: str
    label: str
    where: Q
    order: tuple[str, ...] | None = None


def _no_options(pages: "ReadOnlyAdmin") -> Sequence[Option]:
    return ()


def _not_found(pages: "ReadOnlyAdmin", value: str) -> Option | None:
    return None


@dataclass(frozen=True, slots=True)
class Filter:
    """A row of choices above a list, or with `find` one that another page links to, such as one account's rows."""

    parameter: str
    label: str
    options: Callable[["ReadOnlyAdmin"], Sequence[Option]] = _no_options
    find: Callable[["ReadOnlyAdmin", str], Option | None] = _not_found


def key_text(*key: object) -> str:
    """A row's key as one part of an address."""
    return "~".join(quote(str(part)).replace("~", "_7E") for part in key)


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[type-arg]  # Django has no type parameters at run time
    """A list by key order and a page per row; no add, change, delete, action or history, and no alias but `.read`.

    `list_display` and `fieldsets` name fields or methods as in any ModelAdmin; methods return a plain value or one of
    `config.readonly_admin.values`.
    """

    slug: ClassVar[str]
    """Its part of the address."""
    label: ClassVar[str]
    group: ClassVar[str]
    """Its heading in the sidebar."""
    about: ClassVar[str] = ""
    """One sentence above the list."""
    position: ClassVar[int] = 0
    key: ClassVar[tuple[str, ...]] = ()
    """The unique fields that address a row; its primary key where this is empty."""
    order: ClassVar[tuple[str, ...]]
    """A unique key in one direction that an index serves."""
    filters: ClassVar[tuple[Filter, ...]] = ()
    lookups: ClassVar[tuple[str, ...]] = ()
    """Indexed fields that the list's own box compares exactly: at most one UUID and one text."""
    deferred: ClassVar[tuple[str, ...]] = ()
    """Long columns that the list does not show, so it does not read them."""
    list_template: ClassVar[str] = "operator/list.html"
    row_template: ClassVar[str] = "operator/row.html"
    tables_first: ClassVar[bool] = False
    """Whether what belongs to a row matters more than its fields."""
    headings: ClassVar[dict[str, str]] = {}
    """Shorter words for fields."""
    is_part: ClassVar[bool] = False
    """Whether the list is a part of its table, whose size then says nothing about it."""
    related: ClassVar[tuple[str, ...]] = ()
    """Relations that the list shows; they are joined, never fetched row by row."""
    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_urls(self) -> list[URLPattern]:
        door = self.admin_site.admin_view
        return [
            path("", door(self.list_view), name=self.slug),
            path("<str:key>/", door(self.row_view), name=f"{self.slug}_row"),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.model._default_manager.using(self.alias)
        return rows.select_related(*self.related) if self.related else rows

    @property
    def alias(self) -> str:
        """The read alias of the section that shows these pages."""
        return str(self.admin_site.alias)  # type: ignore[attr-defined]  # OwnerSection

    def url_of_key(self, *key: object) -> str:
        """The address of a row by its key."""
        return reverse(f"{self.admin_site.name}:{self.slug}_row", args=[key_text(*key)])

    def url_of(self, row: Model) -> str:
        """The address of a row."""
        return self.url_of_key(*(getattr(row, field.attname) for field in self._key_fields()))

    def list_url(self, **query: str) -> str:
        """The address of the list, filtered."""
        return reverse(f"{self.admin_site.name}:{self.slug}") + (f"?{urlencode(query)}" if query else "")

    def sibling(self, model: type[Model]) -> "ReadOnlyAdmin":
        """The pages of another model in the same section."""
        return self.admin_site._registry[model]  # type: ignore[return-value]  # the section registers nothing else

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """One page of the list."""
        self._ensure_may_view(request)
        queryset, order = self.get_queryset(request).defer(*self.deferred), self.order
        chosen: dict[str, str] = {}
        bars = []
        for bar in self.filters:
            options = bar.options(self)
            wanted = request.GET.get(bar.parameter, "")
            option = next((option for option in options if option.value == wanted), bar.find(self, wanted))
            if option:
                chosen[bar.parameter] = option.value
                queryset, order = queryset.filter(option.where), option.order or order
            bars.append((bar, options, option))
        text = request.GET.get("q", "").strip()
        if text and self.lookups:
            chosen["q"] = text
            queryset = queryset.filter(self.exactly(text))
        page = keyset.page(queryset, order=order, cursor=request.GET.get("at", ""), size=PAGE_SIZE)
        self.prepare(page.rows)
        return self.answer(
            request,
            self.list_template,
            {
                "title": self.label,
                "table": self.table(page.rows),
                "count": keyset.count(queryset, whole_table=not chosen and not self.is_part),
                "first_url": self.list_url(**chosen),
                "at_first": not page.previous,
                "previous_url": self.list_url(**chosen, at=page.previous) if page.previous else None,
                "next_url": self.list_url(**chosen, at=page.next) if page.next else None,
                "bars": [self._bar(bar, options, option, chosen) for bar, options, option in bars],
                "query": text,
                "lookups": " or ".join(str(self._field(name).verbose_name) for name in self.lookups),  # type: ignore[union-attr]  # lookups are fields
                **self.beside_list(request),
            },
        )

    def row_view(self, request: HttpRequest, key: str) -> HttpResponse:
        """One row, and what belongs to it."""
        self._ensure_may_view(request)
        row = self.find(request, key)
        groups = [
            (name, [(self._heading(field), self.cell(row, field)) for field in flatten_fieldsets([(name, options)])])
            for name, options in self.get_fieldsets(request, row)
        ]
        return self.answer(
            request,
            self.row_template,
            {
                "title": self.title_of(row),
                "groups": groups,
                "tables": self.tables(row),
                "tables_first": self.tables_first,
                "list_url": self.list_url(),
                "list_label": self.label,
                **self.beside_row(row, request),
            },
        )

    def find(self, request: HttpRequest, key: str) -> Any:
        """The row with this key, or 404."""
        parts, fields = [unquote(part) for part in key.split("~")], self._key_fields()
        try:
            values = {field.attname: field.to_python(part) for field, part in zip(fields, parts, strict=True)}
        except (ValidationError, ValueError):
            values = {}
        if not values or "\x00" in "".join(parts):
            raise Http404(f"No {self.opts.verbose_name} has this key.")
        row = self.get_queryset(request).filter(**values).first()
        if row is None:
            raise Http404(f"No {self.opts.verbose_name} has this key.")
        return row

    def title_of(self, row: Any) -> str:
        """The heading of a row's page."""
        key = row.pk if isinstance(row.pk, tuple) else (row.pk,)
        return f"{str(self.opts.verbose_name).capitalize()} {' '.join(map(str, key))}"

    def tables(self, row: Any) -> Sequence[Table]:
        """What belongs to a row, below it."""
        return ()

    def prepare(self, rows: Sequence[Any]) -> None:
        """Read at once what the columns of a page need beside their rows, never row by row."""

    def beside_list(self, request: HttpRequest) -> dict[str, Any]:
        """More for the template of the list."""
        return {}

    def beside_row(self, row: Any, request: HttpRequest) -> dict[str, Any]:
        """More for the template of a row."""
        return {}

    def table(self, rows: Sequence[Any], *, title: str = "", empty: str = "No rows.") -> Table:
        """The rows as the list shows them; the first cell leads to the row."""
        cells = []
        for row in rows:
            first, *rest = (self.cell(row, str(name)) for name in self.list_display)
            cells.append((first if isinstance(first, Link) else Link(first, self.url_of(row)), *rest))
        return Table(title, tuple(self._heading(str(name)) for name in self.list_display), tuple(cells), empty)

    def cell(self, row: Any, name: str) -> Any:
        """The value of one column."""
        method = getattr(self, name, None)
        return method(row) if callable(method) else shown(self._field(name), getattr(row, name))

    def answer(self, request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
        """The page inside the frame of its section."""
        section = self.admin_site.navigation(request)  # type: ignore[attr-defined]  # OwnerSection
        frame = {**self.admin_site.each_context(request), "section": section, "page": self}
        return render(request, template, {**frame, **context})

    def exactly(self, text: str) -> Q:
        """The condition that one of `lookups` is `text`: the UUID if it is one, else the text."""
        fields = {name: self._field(name) for name in self.lookups}
        try:
            value: Any = uuid.UUID(text)
            names = [name for name, field in fields.items() if isinstance(field, UUIDField)]
        except ValueError:
            names = []
        if not names:
            value, names = text, [name for name, field in fields.items() if not isinstance(field, UUIDField)]
        return Q(**{names[0]: value}) if names else Q(pk__in=[])

    def _key_fields(self) -> "list[Field[Any, Any]]":
        return [self.opts.get_field(name) for name in self.key] if self.key else list(self.opts.pk_fields)  # type: ignore[misc]  # keys are fields

    def _ensure_may_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if any("\x00" in value for value in request.GET.values()):
            raise BadRequest("U+0000 stands in no identifier.")

    def _field(self, name: str) -> "Field[Any, Any] | None":
        try:
            field = self.opts.get_field(name)
        except FieldDoesNotExist:
            return None
        if isinstance(field, Field) and field.remote_field and hasattr(field, "target_field"):
            return field.target_field if name == field.attname else field
        return field if isinstance(field, Field) else None

    def _heading(self, name: str) -> str:
        heading = str(label_for_field(name, self.model, self))
        return self.headings.get(name) or heading[:1].upper() + heading[1:]

    def _bar(
        self, bar: Filter, options: Sequence[Option], chosen: Option | None, query: dict[str, str]
    ) -> dict[str, Any]:
        others = {name: value for name, value in query.items() if name != bar.parameter}
        links = [{"label": "All", "url": self.list_url(**others), "chosen": chosen is None}]
        if chosen and chosen not in options:
            options = [*options, chosen]
        links += [
            {"label": o.label, "url": self.list_url(**others, **{bar.parameter: o.value}), "chosen": o is chosen}
            for o in options
        ]
        return {"label": bar.label, "links": links if len(links) > 1 else []}
