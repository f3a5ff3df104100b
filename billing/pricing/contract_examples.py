"""One fixed example of each contract of pricing."""

from billing.pricing.contracts import Price, PriceBook
from outbox.contracts.contract import Contract

EXAMPLES: dict[str, Contract] = {
    "PriceBook": PriceBook.issue(
        ref="price-book:standard:1",
        name="standard",
        book_version=1,
        currency="USD",
        effective_from="2026-01-01T00:00:00.000000Z",
        prices=(
            Price(charge_dimension_key="llm.input_tokens", micros_per_million_units=150_000),
            Price(charge_dimension_key="llm.output_tokens", micros_per_million_units=600_000),
            Price(charge_dimension_key="llm.output_tokens", applies_to="small-1", micros_per_million_units=300_000),
        ),
    ),
}
