"""Import price books, and read the one in effect."""

from datetime import datetime
from functools import lru_cache

import orjson
from django.db import IntegrityError, transaction
from django.db.models import Q

from billing.pricing.contracts import PriceBook, PriceBookFile
from billing.pricing.errors import NoPriceBook, PriceBookConflict, PriceBookInvalid
from billing.pricing.models import StoredPriceBook
from billing.pricing.quote import Prices
from outbox.contracts.canonical import NotCanonicalSafe, encode_trusted
from outbox.contracts.contract import ContentReference, ContractViolation, instant

ALIAS = "billing"
CACHED_BOOKS = 64
"""Books kept parsed in a process. A book never changes, so its reference and digest are a safe key."""


def read_price_book(data: bytes) -> PriceBook:
    """The book in a JSON file, with its digest. Raises `PriceBookInvalid` that names the field."""
    try:
        file = PriceBookFile.from_wire(orjson.loads(data))
        fields = {name: getattr(file, name) for name in PriceBookFile.model_fields}
        fields["prices"] = tuple(sorted(file.prices, key=lambda price: price.key))
        return PriceBook.issue(ref=f"price-book:{file.name}:{file.book_version}", **fields)
    except (orjson.JSONDecodeError, ContractViolation, NotCanonicalSafe, AttributeError) as error:
        raise PriceBookInvalid(f"{error}. {PriceBookInvalid.__doc__}") from error


def import_price_book(book: PriceBook) -> bool:
    """Store the book. False if this very book is stored; raises `PriceBookConflict` if another one is."""
    own = book.reference
    try:
        with transaction.atomic(using=ALIAS, durable=True):
            StoredPriceBook.objects.create(
                price_book_ref=own.ref,
                schema_version=own.schema_version,
                digest_algorithm_version=own.digest_algorithm_version,
                digest=own.digest,
                candidate=encode_trusted(book.candidate()).decode(),
                name=book.name,
                book_version=book.book_version,
                currency=book.currency,
                effective_from=instant(book.effective_from),
            )
    except IntegrityError as error:
        known = StoredPriceBook.objects.filter(
            Q(name=book.name) & (Q(book_version=book.book_version) | Q(effective_from=instant(book.effective_from)))
        ).values_list("digest", flat=True)
        if list(known) != [own.digest]:
            raise PriceBookConflict(f"{own.ref}: {PriceBookConflict.__doc__}") from error
        return False
    return True


def find_price_book(*, name: str, currency: str, at: datetime) -> PriceBook:
    """The book of this name and currency in effect at `at`. Raises `NoPriceBook`."""
    row = (
        StoredPriceBook.objects.filter(name=name, currency=currency, effective_from__lte=at)
        .order_by("-effective_from")
        .first()
    )
    if row is None:
        raise NoPriceBook(f"{name} in {currency}: {NoPriceBook.__doc__}")
    return book_in(row)


def book_in(row: StoredPriceBook) -> PriceBook:
    """The stored book, its digest proven. Raises `ContractViolation`."""
    body = orjson.loads(row.candidate)
    return PriceBook.from_wire(
        {**body, "priceBookRef": row.price_book_ref, "priceBookDigest": row.digest}
    ).ensure_digest()


@lru_cache(maxsize=CACHED_BOOKS)
def prices_of(reference: ContentReference) -> Prices:
    """The prices of one stored book; read once per process."""
    return Prices.of(book_in(StoredPriceBook.objects.get(price_book_ref=reference.ref, digest=reference.digest)))
