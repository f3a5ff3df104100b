"""The exact price of estimated or metered quantities: quantity × price, in pico-units, never rounded."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

from billing.pricing.contracts import PriceBook
from billing.pricing.errors import UnknownPrice


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of one book, in micro-units per 1,000,000 units, by charge dimension and what they apply to."""

    by_key: Mapping[tuple[str, str | None], int]

    @classmethod
    def of(cls, book: PriceBook) -> Self:
        """Every price of the book."""
        return cls(
            MappingProxyType(
                {
                    (price.charge_dimension_key, price.applies_to): price.micros_per_million_units
                    for price in book.prices
                }
            )
        )

    def find(self, charge_dimension_key: str, *, applies_to: str | None = None) -> int:
        """The thing's own price, else the price for all. Raises `UnknownPrice` that names the dimension."""
        price = self.by_key.get((charge_dimension_key, applies_to))
        if price is None:
            price = self.by_key.get((charge_dimension_key, None))
        if price is None:
            raise UnknownPrice(f"{charge_dimension_key}: {UnknownPrice.__doc__}")
        return price


def quote(quantities: Iterable[tuple[str, int]], *, prices: Prices, applies_to: str | None = None) -> int:
    """The amount of (charge dimension, units) in pico-units of the book's currency. Raises `UnknownPrice`.

    Micro-units per million units, times units, is pico-units: 10⁻⁶ / 10⁶ = 10⁻¹².
    """
    return sum(units * prices.find(dimension, applies_to=applies_to) for dimension, units in quantities)
