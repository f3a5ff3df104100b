"""`PriceBook@1`: what one unit of each charge dimension costs, versioned and content-addressed (decisions, "Billing").

A price is a whole number of micro-units of the currency per 1,000,000 units, so 0.15 per million tokens is 150,000.
An amount is quantity × price in pico-units, exact: nothing is rounded. A price may be for one thing only, such as one
model (`appliesTo`); it goes before the price of the same dimension that is for all.
"""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from outbox.contracts.canonical import MAX_INTEGER
from outbox.contracts.contract import ContentAddressed, Contract, Count, Timestamp
from upstream.admission.contracts import ChargeDimensionKey, Currency

MAX_PRICES = 10_000
"""Prices in one book: it is read whole."""

PriceBookName = Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=r"^[a-z0-9][a-z0-9._-]*$")]
AppliesTo = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00]+$")]
"""One thing that a dimension measures and that may have a price of its own: a model, a type of resource."""


class Price(Contract):
    charge_dimension_key: ChargeDimensionKey
    applies_to: AppliesTo | None = None
    """Absent: the price of the dimension for everything that has none of its own."""
    micros_per_million_units: Count

    @property
    def key(self) -> tuple[str, str]:
        """By what prices are unique and sorted: the price for all comes first."""
        return self.charge_dimension_key, self.applies_to or ""


def _unique(prices: tuple[Price, ...]) -> tuple[Price, ...]:
    if len({price.key for price in prices}) != len(prices):
        raise ValueError("each charge dimension stands once for each thing it applies to")
    return prices


def _sorted(prices: tuple[Price, ...]) -> tuple[Price, ...]:
    keys = [price.key for price in prices]
    if keys != sorted(keys):
        raise ValueError("prices are sorted by charge dimension and what they apply to")
    return prices


Prices = Annotated[tuple[Price, ...], Field(min_length=1, max_length=MAX_PRICES), AfterValidator(_unique)]


class PriceBookFile(Contract):
    """What an operator writes to import a book; the order of its prices means nothing."""

    name: PriceBookName
    book_version: Annotated[int, Field(ge=1, le=MAX_INTEGER)]
    currency: Currency
    effective_from: Timestamp
    prices: Prices


class PriceBook(ContentAddressed, own="price_book", version="1"):
    """One version of a named book. The latest that is in effect prices a run; its price stays with the run for ever."""

    name: PriceBookName
    book_version: Annotated[int, Field(ge=1, le=MAX_INTEGER)]
    currency: Currency
    effective_from: Timestamp
    prices: Annotated[Prices, AfterValidator(_sorted)]
