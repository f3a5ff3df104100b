"""The exact price of estimated or metered quantities: quantity × price, in pico-units, never rounded."""

from collections.abc import Iterable, Mapping

from billing.pricing.errors import UnknownPrice
from upstream.admission.contracts import EstimatedQuantity


def quote(quantities: Iterable[EstimatedQuantity], *, prices: Mapping[str, int]) -> int:
    """The amount in pico-units of the book's currency. Raises `UnknownPrice` that names the dimension.

    Micro-units per million units, times units, is pico-units: 10⁻⁶ / 10⁶ = 10⁻¹².
    """
    total = 0
    for quantity in quantities:
        price = prices.get(quantity.charge_dimension_key)
        if price is None:
            raise UnknownPrice(f"{quantity.charge_dimension_key}: {UnknownPrice.__doc__}")
        total += quantity.quantity * price
    return total
