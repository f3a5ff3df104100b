"""`manage.py price_books import|show|quote`"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from pydantic import ValidationError

from billing.pricing.books import book_in, find_price_book, import_price_book, read_price_book
from billing.pricing.errors import PricingError
from billing.pricing.models import StoredPriceBook
from billing.pricing.quote import Prices, quote
from config.owners import owner_named
from outbox.contracts.contract import describe
from upstream.admission.contracts import EstimatedQuantity


class Command(BaseCommand):
    help = "Price books: versioned, content-addressed, never changed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        importing = actions.add_parser("import", help="Import a JSON file; importing it again changes nothing.")
        importing.add_argument("file", type=Path)
        showing = actions.add_parser("show", help="List all books, or the prices of one.")
        showing.add_argument("ref", nargs="?")
        quoting = actions.add_parser("quote", help="Price quantities with the book in effect now.")
        quoting.add_argument("name")
        quoting.add_argument("currency")
        quoting.add_argument("quantities", nargs="+", metavar="dimension=quantity")
        quoting.add_argument("--applies-to", help="For what, such as one model; default: the prices for all.")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        try:
            {"import": self._import, "show": self._show, "quote": self._quote}[action](options)
        except PricingError as error:
            raise CommandError(str(error)) from error

    def _import(self, options: dict[str, Any]) -> None:
        try:
            data = options["file"].read_bytes()
        except OSError as error:
            raise CommandError(f"Cannot read {options['file']}: {error.strerror}.") from error
        book = read_price_book(data)
        fresh = import_price_book(book)
        note = "imported" if fresh else "was imported before; nothing changed"
        self.stdout.write(f"{book.reference.ref} {book.reference.digest} {note}")

    def _show(self, options: dict[str, Any]) -> None:
        books = StoredPriceBook.objects.using(owner_named("billing").read_alias)
        if options["ref"] is None:
            for row in books.order_by("name", "currency", "effective_from"):
                self.stdout.write(
                    f"{row.price_book_ref}  {row.currency}  from {row.effective_from:%Y-%m-%dT%H:%M:%S.%fZ}"
                )
            return
        found = books.filter(price_book_ref=options["ref"]).first()
        if found is None:
            raise CommandError(f"There is no price book {options['ref']!r}; `price_books show` lists them.")
        book = book_in(found)
        self.stdout.write(f"{book.reference.ref}  {book.currency}  {book.reference.digest}")
        for price in book.prices:
            named = " ".join(part for part in price.key if part)
            self.stdout.write(f"  {named}  {price.micros_per_million_units} micros per 1,000,000")

    def _quote(self, options: dict[str, Any]) -> None:
        book = find_price_book(name=options["name"], currency=options["currency"], at=timezone.now())
        quantities = [_quantity(text) for text in options["quantities"]]
        amount = quote(quantities, prices=Prices.of(book), applies_to=options["applies_to"])
        self.stdout.write(f"{amount} pico-{book.currency} by {book.reference.ref}")


def _quantity(text: str) -> tuple[str, int]:
    key, _, number = text.partition("=")
    try:
        quantity = EstimatedQuantity(charge_dimension_key=key, quantity=int(number))
    except ValidationError as error:
        raise CommandError(f"{text!r}: {describe(error)}") from error
    except ValueError as error:
        raise CommandError(f"{text!r}: write dimension=quantity with a whole number.") from error
    return quantity.charge_dimension_key, quantity.quantity
