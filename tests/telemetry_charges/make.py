"""Charges for tests, and a payer for them."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from billing.ledger.models import ChargeSource
from billing.pricing.books import import_price_book, read_price_book
from billing.telemetry_charges.post_charges import post_telemetry_charges
from metering.consumption.contracts import (
    ChargeAnswer,
    ChargePosted,
    ChargeRefused,
    EventKind,
    TelemetryCharge,
    UsedQuantity,
)
from outbox.contracts.contract import timestamp
from tests.billing.books import PRICE_BOOK, funded_account, standard_prices

HOUR = timedelta(hours=1)
WINDOW = datetime(2026, 3, 4, 10, tzinfo=UTC)
INPUT, CACHED, OUTPUT = "llm.input_tokens", "llm.cached_input_tokens", "llm.output_tokens"
COST = 1000 * 150_000 + 10 * 600_000
"""What 1,000 input and 10 output tokens cost at the standard prices, in pico-units."""


def payer(picos: int = 10**15, *, organization: str = "org-1", source: ChargeSource = ChargeSource.TELEMETRY) -> str:
    """An account of the organisation that is charged from telemetry, with this much in its wallet."""
    standard_prices()
    return funded_account(picos, tenant=organization, charge_source=source)


def usage(
    generation: int = 1,
    *,
    organization: str = "org-1",
    applies_to: str = "small-1",
    start: datetime = WINDOW,
    end: datetime | None = None,
    kind: EventKind = "llm_billing",
    cluster: str = "7",
    used: dict[str, int] | None = None,
) -> TelemetryCharge:
    """One charge; by default 1,000 input and 10 output tokens of one model in one hour."""
    quantities = {INPUT: 1000, OUTPUT: 10} if used is None else used
    return TelemetryCharge.of(
        event_kind=kind,
        cluster_id=cluster,
        window_start=timestamp(start),
        window_end=timestamp(end or start + HOUR),
        organization_id=organization,
        applies_to=applies_to,
        generation=generation,
        quantities=tuple(
            UsedQuantity(charge_dimension_key=key, quantity=str(quantities[key])) for key in sorted(quantities)
        ),
    )


def post_one(charge: TelemetryCharge) -> ChargeAnswer:
    """What billing answers to this charge alone."""
    (answer,) = post_telemetry_charges([charge])
    return answer


def amount_of(answer: ChargeAnswer) -> int:
    """The whole amount of a posted charge."""
    assert isinstance(answer, ChargePosted), answer
    return int(answer.amount_picos)


def reasons(answers: Sequence[ChargeAnswer]) -> list[str]:
    """`posted`, or why not."""
    return [answer.reason if isinstance(answer, ChargeRefused) else answer.state for answer in answers]


def another_book(*, version: int, effective_from: datetime, **prices: int) -> str:
    """Import a later version of the standard book: dimension (dots as underscores) to price."""
    book = read_price_book(
        json.dumps(
            {
                **json.loads(PRICE_BOOK),
                "bookVersion": version,
                "effectiveFrom": timestamp(effective_from),
                "prices": [price(name.replace("_", ".", 1), micros) for name, micros in prices.items()],
            }
        ).encode()
    )
    assert import_price_book(book)
    return book.reference.ref


def price(dimension: str, micros: int, **more: Any) -> dict[str, Any]:
    """One line of a price book's file."""
    return {"chargeDimensionKey": dimension, "microsPerMillionUnits": micros, **more}
