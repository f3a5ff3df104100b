"""Cost facts beside usage: exact, by the price book in effect, and never guessed (C10)."""

from datetime import UTC, datetime, timedelta

import orjson
import pytest

from billing.commercial import hooks
from billing.pricing.books import import_price_book, read_price_book
from tests.commercial.make import AT, BUSINESS, operation, rows, states, subscribe
from tests.commercial.notes import Interrupted, notes, write_note

pytestmark = [pytest.mark.usefixtures("business"), pytest.mark.spec("C10")]

COST = {"priceBook": "provider-costs", "currency": "USD", "chargeDimensionKey": "notes.written"}


def import_costs(
    *, version: int = 1, micros: int = 250_000, effective: str = "2026-01-01T00:00:00.000000Z", dimension: str = ""
) -> None:
    """A book in which a note costs so many micro-units per million, which is as many pico-units."""
    written = {
        "name": "provider-costs",
        "bookVersion": version,
        "currency": "USD",
        "effectiveFrom": effective,
        "prices": [{"chargeDimensionKey": dimension or "notes.written", "microsPerMillionUnits": micros}],
    }
    import_price_book(read_price_book(orjson.dumps(written)))


def costs() -> list[tuple[str, str, int, int, int]]:
    found = rows(
        "SELECT price_book_ref, currency, quantity, unit_cost_picos, amount_picos FROM commercial_cost_events"
        " ORDER BY usage_id"
    )
    return [(book, currency, quantity, int(unit), int(amount)) for book, currency, quantity, unit, amount in found]


def test_each_usage_has_its_cost_exactly() -> None:
    import_costs()
    contract = subscribe(limit=2**53 - 1, cost=COST)
    write_note(contract, "a", "text")
    with hooks.business_transaction(using=BUSINESS) as work:
        work.reserve(operation(contract), quantity=2**40 + 1, at=AT)
    book = "price-book:provider-costs:1"
    assert costs() == [
        (book, "USD", 1, 250_000, 250_000),
        (book, "USD", 2**40 + 1, 250_000, 250_000 * (2**40 + 1)),
    ]


def test_a_cost_is_that_of_the_book_in_effect_when_quota_was_asked_for() -> None:
    import_costs()
    import_costs(version=2, micros=7, effective="2026-07-17T13:00:00.000000Z")
    contract = subscribe(cost=COST)
    change = datetime(2026, 7, 17, 13, tzinfo=UTC)
    write_note(contract, "before", "text", at=change - timedelta(microseconds=1))
    write_note(contract, "after", "text", at=change)
    assert [(book, unit) for book, _, _, unit, _ in costs()] == [
        ("price-book:provider-costs:1", 250_000),
        ("price-book:provider-costs:2", 7),
    ]


@pytest.mark.trap("M7")
@pytest.mark.parametrize("there_is", ["no book", "a book without this dimension", "a book that is not in effect yet"])
def test_an_unknown_cost_is_refused_before_anything_is_touched(there_is: str) -> None:
    if there_is == "a book without this dimension":
        import_costs(dimension="notes.read")
    if there_is == "a book that is not in effect yet":
        import_costs(effective="2026-07-17T12:00:00.000001Z")
    contract = subscribe(cost=COST)
    with pytest.raises(hooks.UnknownCost):
        write_note(contract, "a", "text")
    assert (notes(), states(), costs()) == ({}, [], [])
    import_costs(version=9, effective="2026-02-01T00:00:00.000000Z")
    write_note(contract, "a", "text")
    assert len(costs()) == 1


def test_what_rolls_back_costs_nothing_and_a_reopened_one_costs_what_it_costs_then() -> None:
    import_costs()
    contract = subscribe(cost=COST)
    with pytest.raises(Interrupted):
        write_note(contract, "a", "text", request="r", fails=True)
    assert costs() == []
    import_costs(version=2, micros=9, effective="2026-07-17T12:30:00.000000Z")
    write_note(contract, "a", "text", request="r", at=AT + timedelta(hours=1))
    assert [unit for _, _, _, unit, _ in costs()] == [9]


def test_a_meter_without_a_cost_writes_none() -> None:
    write_note(subscribe(), "a", "text")
    assert costs() == []
    assert rows("SELECT unit_cost_picos, cost_currency FROM commercial_runtime_reservations") == [(None, None)]
