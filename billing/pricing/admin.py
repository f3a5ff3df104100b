"""Imported price books, to be read."""

import json
from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from billing.pricing.models import StoredPriceBook
from config.readonly_admin import SECTIONS, Code, Document, ReadOnlyAdmin, Reference, Table


class PriceBookAdmin(ReadOnlyAdmin):
    slug = "price-books"
    label = "Price books"
    group = "Money"
    position = 75
    about = "Prices are whole micro-units of the currency per 1,000,000 units. A book never changes; it is followed."
    order = ("-name", "-book_version")
    deferred = ("candidate",)
    list_display = ("price_book_ref", "name", "book_version", "currency", "effective_from", "imported_at")
    fieldsets = (
        ("Book", {"fields": ("name", "book_version", "currency", "effective_from", "imported_at")}),
        ("Content", {"fields": ("reference",)}),
    )

    @admin.display(description="four-tuple")
    def reference(self, row: StoredPriceBook) -> Reference:
        return Reference(row.price_book_ref, row.schema_version, row.digest_algorithm_version, row.digest)

    def title_of(self, row: StoredPriceBook) -> str:
        return f"Price book {row.name}, version {row.book_version}"

    def tables(self, row: StoredPriceBook) -> list[Table]:
        prices = json.loads(row.candidate)["prices"]
        cells = tuple(
            (
                Code(price["chargeDimensionKey"]),
                price.get("appliesTo", "all others"),
                price["microsPerMillionUnits"],
                _per_million(price, row.currency),
            )
            for price in prices
        )
        per_unit = (f"Micro-{row.currency} per 1,000,000 units", "Price per 1,000,000 units")
        headings = ("Charge dimension", "Applies to", *per_unit)
        return [Table("Prices", headings, cells)]

    def beside_row(self, row: StoredPriceBook, request: HttpRequest) -> dict[str, Any]:
        size = len(row.candidate.encode())
        return {"documents": [("Content", f"canonical, {size:,} bytes", Document(row.candidate), row.candidate)]}


def _per_million(price: dict[str, Any], currency: str) -> str:
    units, micros = divmod(int(price["microsPerMillionUnits"]), 10**6)
    return f"{units:,}.{f'{micros:06d}'.rstrip('0').ljust(2, '0')} {currency}"


SECTIONS["billing"].register(StoredPriceBook, PriceBookAdmin)
