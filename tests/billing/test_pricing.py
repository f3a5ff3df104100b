import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.pricing.books import find_price_book, import_price_book, prices_of, read_price_book
from billing.pricing.errors import NoPriceBook, PriceBookConflict, PriceBookInvalid, UnknownPrice
from billing.pricing.models import StoredPriceBook
from billing.pricing.quote import Prices, quote
from tests.billing.attempts import NO_PRIVILEGE, refusal_of
from tests.billing.books import PRICE_BOOK, standard_prices

RunCommand = Callable[..., subprocess.CompletedProcess[str]]
QUANTITY = st.integers(0, 2**53 - 1)


def book(**changes: object) -> bytes:
    return json.dumps({**json.loads(PRICE_BOOK), **changes}).encode()


def at(year: int) -> datetime:
    return datetime(year, 6, 1, tzinfo=UTC)


@pytest.mark.trap("M6")
@given(quantity=QUANTITY, price=QUANTITY)
def test_an_amount_is_quantity_times_price_without_rounding(quantity: int, price: int) -> None:
    prices = Prices({("llm.input_tokens", None): price})
    assert quote([("llm.input_tokens", quantity)], prices=prices) == quantity * price


def test_fifteen_cents_per_million_tokens_are_150_000_picos_a_token() -> None:
    prices = Prices({("llm.input_tokens", None): 150_000})
    assert quote([("llm.input_tokens", 1_000_000)], prices=prices) == 150_000_000_000  # 0.15 of 10¹²


@pytest.mark.trap("M7")
def test_an_unknown_price_is_refused_by_name() -> None:
    with pytest.raises(UnknownPrice, match=r"llm\.thoughts"):
        quote([("llm.thoughts", 0)], prices=Prices({("llm.thoughts", "thinker-1"): 1}), applies_to="other")


def test_the_price_of_one_model_goes_before_the_price_of_all() -> None:
    dear = {"chargeDimensionKey": "llm.input_tokens", "appliesTo": "large-1", "microsPerMillionUnits": 2_000_000}
    found = read_price_book(book(prices=[dear, *json.loads(PRICE_BOOK)["prices"]]))
    assert [price.key for price in found.prices] == [
        ("llm.input_tokens", ""), ("llm.input_tokens", "large-1"), ("llm.output_tokens", ""),
    ]  # fmt: skip
    used, prices = [("llm.input_tokens", 10), ("llm.output_tokens", 1)], Prices.of(found)
    assert quote(used, prices=prices, applies_to="large-1") == 10 * 2_000_000 + 600_000
    assert quote(used, prices=prices, applies_to="small-1") == quote(used, prices=prices) == 10 * 150_000 + 600_000
    for twice in ([dear, dear], [{**dear, "appliesTo": ""}], [{**dear, "appliesTo": "a\0b"}]):
        with pytest.raises(PriceBookInvalid):
            read_price_book(book(prices=twice))


def test_the_order_of_prices_in_the_file_does_not_matter_to_the_digest() -> None:
    reversed_prices = list(reversed(json.loads(PRICE_BOOK)["prices"]))
    assert read_price_book(book(prices=reversed_prices)).reference == read_price_book(PRICE_BOOK).reference
    assert read_price_book(book(currency="EUR")).reference.digest != read_price_book(PRICE_BOOK).reference.digest


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"currency": "usd"}, "currency"),
        ({"bookVersion": 0}, "bookVersion"),
        ({"bookVersion": "1"}, "bookVersion"),
        ({"effectiveFrom": "2020-01-01"}, "effectiveFrom"),
        ({"effectiveFrom": "2020-02-30T00:00:00.000000Z"}, "effectiveFrom"),
        ({"prices": []}, "prices"),
        ({"prices": [{"chargeDimensionKey": "a", "microsPerMillionUnits": 1.5}]}, "microsPerMillionUnits|float"),
        ({"prices": [{"chargeDimensionKey": "a", "microsPerMillionUnits": -1}]}, "microsPerMillionUnits"),
        ({"prices": [{"chargeDimensionKey": "A b", "microsPerMillionUnits": 1}]}, "chargeDimensionKey"),
        ({"prices": [{"chargeDimensionKey": "a", "microsPerMillionUnits": 1}] * 2}, "stands once"),
        ({"discount": 1}, "discount"),
    ],
)
def test_a_file_that_is_no_price_book_is_refused_and_the_field_named(changes: dict[str, object], field: str) -> None:
    with pytest.raises(PriceBookInvalid, match=field):
        read_price_book(book(**changes))


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"null", b"\xff", b'{"name": "a"}'])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(PriceBookInvalid):
        read_price_book(data)


@pytest.mark.usefixtures("database")
def test_a_book_is_imported_once_and_another_one_under_its_name_conflicts() -> None:
    first = read_price_book(PRICE_BOOK)
    assert import_price_book(first)
    assert not import_price_book(first)
    cheaper = [{"chargeDimensionKey": "llm.input_tokens", "microsPerMillionUnits": 1}]
    for other in (book(prices=cheaper), book(bookVersion=2, prices=cheaper)):
        with pytest.raises(PriceBookConflict):
            import_price_book(read_price_book(other))
    assert StoredPriceBook.objects.count() == 1


@pytest.mark.trap("M5")
@pytest.mark.usefixtures("database")
def test_the_book_in_effect_is_the_latest_that_has_begun() -> None:
    import_price_book(read_price_book(PRICE_BOOK))
    import_price_book(read_price_book(book(bookVersion=2, effectiveFrom="2025-01-01T00:00:00.000000Z")))
    edge = datetime(2025, 1, 1, tzinfo=UTC)
    versions = [
        find_price_book(name="standard", currency="USD", at=when).book_version
        for when in (at(2024), edge.replace(year=2024, month=12, day=31), edge, at(2026))
    ]
    assert versions == [1, 1, 2, 2]
    for name, currency, when in (
        ("standard", "EUR", at(2024)),
        ("other", "USD", at(2024)),
        ("standard", "USD", at(2019)),
    ):
        with pytest.raises(NoPriceBook):
            find_price_book(name=name, currency=currency, at=when)
    prices = prices_of(find_price_book(name="standard", currency="USD", at=at(2024)).reference)
    assert prices.find("llm.input_tokens") == 150_000


@pytest.mark.usefixtures("database")
def test_the_database_refuses_forged_books_and_changes() -> None:
    standard_prices()
    columns = (
        "schema_version, digest_algorithm_version, digest, candidate, name, book_version, currency, effective_from"
    )
    copy = "INSERT INTO price_books (price_book_ref, {columns}) SELECT 'x', {values} FROM price_books"

    def insert(**changed: str) -> str:
        values = ", ".join(changed.get(column, column) for column in columns.split(", "))
        return copy.format(columns=columns, values=values)

    for alias in ("billing", "billing.schema"):
        assert refusal_of(alias, insert(digest="repeat('0', 64)")) == "price_book_digest"
        assert refusal_of(alias, insert(candidate="replace(candidate, '150000', '1')")) == "price_book_digest"
        for column, value in (
            ("name", "'other'"),
            ("book_version", "2"),
            ("currency", "'EUR'"),
            ("effective_from", "now()"),
        ):
            assert refusal_of(alias, insert(**{column: value})) == "price_book_columns"
        assert refusal_of(alias, insert()) == "price_book_once"
    assert refusal_of("billing.schema", "UPDATE price_books SET currency = 'EUR'") == "price_book_kept"
    assert refusal_of("billing.schema", "TRUNCATE price_books CASCADE").endswith("_truncate")
    for alias in ("billing", "billing.dispatch", "billing.read"):
        assert refusal_of(alias, "UPDATE price_books SET currency = 'EUR'") == NO_PRIVILEGE


@pytest.mark.usefixtures("database")
def test_the_command_imports_shows_and_quotes(run_command: RunCommand, tmp_path: Path) -> None:
    file = tmp_path / "book.json"
    file.write_bytes(PRICE_BOOK)
    assert "imported" in run_command("price_books", "import", str(file)).stdout
    assert "nothing changed" in run_command("price_books", "import", str(file)).stdout
    assert "price-book:standard:1" in run_command("price_books", "show").stdout
    assert "llm.output_tokens  600000" in run_command("price_books", "show", "price-book:standard:1").stdout
    quoted = run_command("price_books", "quote", "standard", "USD", "llm.input_tokens=1000", "llm.output_tokens=100")
    assert quoted.stdout.splitlines()[-1] == "210000000 pico-USD by price-book:standard:1"
    for wrong in (("quote", "standard", "USD", "llm.thoughts=1"), ("quote", "standard", "EUR", "llm.input_tokens=1"),
                  ("quote", "standard", "USD", "llm.input_tokens=many"), ("import", str(tmp_path / "absent")),
                  ("show", "price-book:absent:1")):  # fmt: skip
        refused = run_command("price_books", *wrong)
        assert refused.returncode == 1
        assert "Traceback" not in refused.stderr
