"""`PriceBook@1`: what one unit of each charge dimension costs, versioned and content-addressed (decisions, "Billing").

A price is a whole number of micro-units of the currency per 1,000,000 units, so 0.15 per million tokens is 150,000.
An amount is quantity × price in pico-units, exact: nothing is rounded.
"""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from outbox.contracts.canonical import MAX_INTEGER
from outbox.contracts.contract import ContentAddressed, Contract, Count, Timestamp
from upstream.admission.contracts import ChargeDimensionKey, Currency

MAX_PRICES = 10_000
"""Prices in one book: it is read whole."""

PriceBookName = Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=r"^[a-z0-9][a-z0-9._-]*$")]


class Price(Contract):
    charge_dimension_key: ChargeDimensionKey
    micros_per_million_units: Count


def _unique(prices: tuple[Price, ...]) -> tuple[Price, ...]:
    keys = {price.charge_dimension_key for price in prices}
    if len(keys) != len(prices):
        raise ValueError("each charge dimension stands once")
    return prices


def _sorted(prices: tuple[Price, ...]) -> tuple[Price, ...]:
    keys = [price.charge_dimension_key for price in prices]
    if keys != sorted(keys):
        raise ValueError("charge dimensions are sorted")
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
