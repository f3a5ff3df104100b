"""Applied receipts: the proof that an event is part of a projection, written once (O21, O26)."""

import re

from django.db import models
from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now

from operations.projector.contracts import CONSUMER_NAME, DESTINATION, RECEIPT_SCHEMA_VERSION
from outbox.contracts.canonical import DIGEST_ALGORITHM
from outbox.guards import append_only

_OWN = "operationsProjectionAppliedReceipt"
_CANDIDATE = ",".join(
    f'"{name}":"{value}"'
    for name, value in (
        ("consumerName", "{consumer_name}"),
        ("destination", DESTINATION),
        ("eventEnvelopeDigestAlgorithmVersion", "{event_envelope_digest_algorithm_version}"),
        ("eventEnvelopeSha256", "{event_envelope_sha256}"),
        ("eventId", "{event_id::text}"),
        ("eventSchemaVersion", "{event_schema_version}"),
        ("eventType", "{event_type}"),
        (f"{_OWN}DigestAlgorithmVersion", DIGEST_ALGORITHM),
        (f"{_OWN}SchemaVersion", RECEIPT_SCHEMA_VERSION),
        ("projectionName", "{projection_name}"),
        ("projectionVersion", "{projection_version}"),
    )
)
"""The canonical text that the digest covers, without its braces; columns stand in braces."""
CANDIDATE = (
    "('{' || "
    + " || ".join(part if odd % 2 else f"'{part}'" for odd, part in enumerate(re.split(r"\{(.*?)\}", _CANDIDATE)))
    + " || '}')"
)
"""The same as SQL over the columns."""
_WORDS = (
    "projection_name || projection_version || event_type || event_schema_version || event_envelope_sha256"
    " || receipt_digest"
)


def _true(condition: str) -> RawSQL:
    return RawSQL(condition, (), output_field=BooleanField())  # noqa: S611  # composed of this module's constants


class ProjectionAppliedReceipt(models.Model):
    """One event applied to one projection version.

    The columns are the whole receipt: the database recomputes its digest from them, and its body is written from them
    whenever it is asked for, always with the same bytes. Storing the body as well would double the table and prove
    nothing more. Producer and definition are those that the delivery was frozen with.
    """

    pk = models.CompositePrimaryKey("event_id", "consumer_name", "projection_name", "projection_version")
    event_id = models.UUIDField()
    consumer_name = models.TextField(db_collation="C")
    projection_name = models.TextField(db_collation="C")
    projection_version = models.TextField(db_collation="C")
    event_type = models.TextField()
    event_schema_version = models.TextField()
    event_envelope_digest_algorithm_version = models.TextField()
    event_envelope_sha256 = models.TextField()
    applied_at = models.DateTimeField(db_default=Now())
    receipt_digest = models.TextField()
    producer = models.TextField()
    delivery_set_version = models.TextField()
    delivery_set_definition_schema_version = models.TextField()
    delivery_set_definition_digest_algorithm_version = models.TextField()
    delivery_set_definition_digest = models.TextField()

    class Meta:
        db_table = "operations_projection_applied_receipts"
        verbose_name = "applied receipt"
        constraints = [
            models.CheckConstraint(name="operations_receipt_consumer", condition=Q(consumer_name=CONSUMER_NAME)),
            models.CheckConstraint(
                name="operations_receipt_algorithm",
                condition=Q(event_envelope_digest_algorithm_version=DIGEST_ALGORITHM),
            ),
            models.CheckConstraint(
                name="operations_receipt_words",
                condition=_true(
                    f"strpos({_WORDS}, '\"') = 0 AND strpos({_WORDS}, '\\') = 0"
                    " AND length(event_envelope_sha256) = 64 AND length(receipt_digest) = 64"
                ),
            ),
            models.CheckConstraint(
                name="operations_receipt_digest",
                condition=_true(f"receipt_digest = encode(sha256(convert_to({CANDIDATE}, 'UTF8')), 'hex')"),
            ),
        ]
        triggers = append_only(name="operations_receipt", message="A receipt is proof of delivery; it never changes.")
