"""Imported price books; a book never changes, a new version replaces it."""

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from outbox.contracts.canonical import DIGEST_ALGORITHM
from outbox.guards import Guard, append_only, refusal

SAYS = """'{"bookVersion":' || NEW.book_version::text || ',"currency":' || to_json(NEW.currency)::text
    || ',"effectiveFrom":"' || to_char(NEW.effective_from AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    || '","name":' || to_json(NEW.name)::text || ',"priceBookDigestAlgorithmVersion":"jcs-sha256-v1"'
    || ',"priceBookSchemaVersion":"1","prices":['"""


class StoredPriceBook(models.Model):
    """`PriceBook@1`: the text its digest covers, and the columns by which it is found."""

    price_book_ref = models.TextField(primary_key=True)
    schema_version = models.TextField()
    digest_algorithm_version = models.TextField()
    digest = models.TextField()
    candidate = models.TextField(help_text="The canonical text that the digest covers, byte for byte.")
    name = models.TextField()
    book_version = models.BigIntegerField()
    currency = models.TextField()
    effective_from = models.DateTimeField()
    imported_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "price_books"
        verbose_name = "price book"
        constraints = [
            models.CheckConstraint(
                name="price_book_schema_version",
                condition=Q(schema_version="1", digest_algorithm_version=DIGEST_ALGORITHM),
            ),
            models.UniqueConstraint(name="price_book_once", fields=["name", "book_version"]),
            models.UniqueConstraint(name="price_book_in_effect", fields=["name", "currency", "effective_from"]),
        ]
        triggers = [
            *append_only(name="price_book", message="A price book never changes; import a new version."),
            Guard(
                name="price_book_digest",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                func=f"""
                    IF NEW.digest IS DISTINCT FROM encode(sha256(convert_to(NEW.candidate, 'UTF8')), 'hex') THEN
                        {refusal("price_book_digest", "The digest is not the SHA-256 of the stored text.")}
                    END IF;
                    IF starts_with(NEW.candidate, {SAYS}) IS NOT TRUE THEN
                        {refusal("price_book_columns", "The columns do not say what the canonical text says.")}
                    END IF;
                    RETURN NEW;
                """,
            ),
        ]
