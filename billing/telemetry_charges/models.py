"""What telemetry charged to accounts: one charge per organisation, window and thing used, in generations.

Both tables are append-only. A generation names the whole amount and by how much it differs from the one before; only
that difference is posted. Generations of one charge form one chain, in rising order.
"""

import pgtrigger
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from billing.ledger.models import BillingAccount, ChargeSource, LedgerPosting, picos
from billing.pricing.models import StoredPriceBook
from outbox.contracts.canonical import DIGEST_ALGORITHM
from outbox.guards import Guard, append_only, refusal

SAYS_FIRST = """'{"appliesTo":' || to_json(c.applies_to)::text || ',"clusterId":' || to_json(c.cluster_id)::text
    || ',"eventKind":' || to_json(c.event_kind)::text || ',"generation":' || NEW.generation::text
    || ',"organizationId":' || to_json(c.organization_id)::text || ',"quantities":['"""
SAYS_LAST = """'],"telemetryChargeDigestAlgorithmVersion":"jcs-sha256-v1","telemetryChargeSchemaVersion":"1"'
    || ',"windowEnd":"' || to_char(c.window_end AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    || '","windowStart":"' || to_char(c.window_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '"}'"""


class TelemetryKind(models.TextChoices):
    """From what kind of events a charge comes."""

    LLM_BILLING = "llm_billing", "LLM: tokens of one model"
    RESOURCE_UTILIZATION = "resource_utilization", "Resource: samples of one type of resource"


class StoredTelemetryCharge(models.Model):
    """The identity of a charge, and the account that pays it."""

    charge_id = models.TextField(primary_key=True)
    event_kind = models.TextField(choices=TelemetryKind)
    cluster_id = models.TextField()
    window_start = models.DateTimeField()
    window_end = models.DateTimeField(help_text="The first moment after the window.")
    organization_id = models.TextField()
    applies_to = models.TextField(help_text="The model, or the type of resource.")
    billing_account = models.ForeignKey(BillingAccount, on_delete=models.PROTECT, db_index=False)
    charge_source = models.TextField(db_default=ChargeSource.TELEMETRY)
    currency = models.TextField()
    first_posted_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "telemetry_charges"
        verbose_name = "telemetry charge"
        constraints = [
            models.CheckConstraint(
                name="telemetry_charge_kind_closed", condition=Q(event_kind__in=TelemetryKind.values)
            ),
            models.CheckConstraint(name="telemetry_charge_window", condition=Q(window_end__gt=F("window_start"))),
            models.CheckConstraint(
                name="telemetry_charge_charges_telemetry", condition=Q(charge_source=ChargeSource.TELEMETRY)
            ),
            models.UniqueConstraint(
                name="telemetry_charge_once",
                fields=["event_kind", "cluster_id", "window_start", "organization_id", "applies_to"],
            ),
        ]
        indexes = [
            models.Index(name="telemetry_charge_of_account", fields=["billing_account", "window_start", "charge_id"]),
            models.Index(name="telemetry_charge_by_window", fields=["window_start", "charge_id"]),
        ]
        triggers = append_only(name="telemetry_charge", message="A charge never changes; post a later generation.")


class ChargeGeneration(models.Model):
    """One state of a charge: what was used in all, what it costs in all, and the posting of the difference."""

    pk = models.CompositePrimaryKey("charge_id", "generation")
    charge = models.ForeignKey(
        StoredTelemetryCharge, on_delete=models.PROTECT, related_name="generations", db_index=False
    )
    generation = models.BigIntegerField()
    previous_generation = models.BigIntegerField(null=True)
    schema_version = models.TextField()
    digest_algorithm_version = models.TextField()
    digest = models.TextField()
    candidate = models.TextField(help_text="The canonical text that the digest covers, byte for byte.")
    price_book = models.ForeignKey(StoredPriceBook, on_delete=models.PROTECT, db_index=False)
    amount_picos = picos(help_text="The whole charge, in pico-units.")
    delta_picos = picos(help_text="By how much that is more than in the generation before.")
    posting = models.OneToOneField(LedgerPosting, on_delete=models.PROTECT, null=True)
    posted_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "telemetry_charge_generations"
        constraints = [
            models.CheckConstraint(
                name="telemetry_charge_schema_version",
                condition=Q(schema_version="1", digest_algorithm_version=DIGEST_ALGORITHM),
            ),
            models.CheckConstraint(
                name="telemetry_charge_generations_rise",
                condition=Q(generation__gte=1)
                & (
                    Q(previous_generation=None) | Q(previous_generation__gte=1, generation__gt=F("previous_generation"))
                ),
            ),
            models.CheckConstraint(name="telemetry_charge_not_negative", condition=Q(amount_picos__gte=0)),
            models.CheckConstraint(
                name="telemetry_charge_posts_differences",
                condition=Q(delta_picos=0, posting=None) | (~Q(delta_picos=0) & Q(posting__isnull=False)),
            ),
            models.UniqueConstraint(
                name="telemetry_charge_one_chain", fields=["charge", "previous_generation"], nulls_distinct=False
            ),
        ]
        triggers = [
            *append_only(name="telemetry_charge_generation", message="A generation never changes; post a later one."),
            Guard(
                name="telemetry_charge_content",
                when=pgtrigger.After,
                operation=pgtrigger.Insert,
                timing=pgtrigger.Deferred,
                declare=[("c", "public.telemetry_charges%ROWTYPE")],
                func=f"""
                    SELECT * INTO c FROM public.telemetry_charges WHERE charge_id = NEW.charge_id;
                    IF NEW.digest IS DISTINCT FROM encode(sha256(convert_to(NEW.candidate, 'UTF8')), 'hex') THEN
                        {refusal("telemetry_charge_digest", "The digest is not the SHA-256 of the stored text.")}
                    END IF;
                    IF (starts_with(NEW.candidate, {SAYS_FIRST})
                        AND right(NEW.candidate, length({SAYS_LAST})) = {SAYS_LAST}) IS NOT TRUE THEN
                        {refusal("telemetry_charge_columns", "The columns do not say what the canonical text says.")}
                    END IF;
                    IF NEW.delta_picos IS DISTINCT FROM NEW.amount_picos - coalesce((
                        SELECT g.amount_picos FROM public.telemetry_charge_generations g
                         WHERE g.charge_id = NEW.charge_id AND g.generation = NEW.previous_generation), 0) THEN
                        {refusal("telemetry_charge_delta", "The difference is not that to the generation before.")}
                    END IF;
                    IF NEW.posting_id IS NOT NULL AND NOT EXISTS (
                        SELECT FROM public.ledger_postings p
                          JOIN public.ledger_entries e ON e.posting_id = p.reference
                         WHERE p.reference = NEW.posting_id AND p.kind = 'charge' AND p.entry_count = 2
                           AND p.billing_account_id = c.billing_account_id
                           AND e.ledger_account_id = 'revenue:' || c.billing_account_id
                           AND e.amount_picos = NEW.delta_picos) THEN
                        {refusal("telemetry_charge_posting", "The posting does not move the difference to revenue.")}
                    END IF;
                    RETURN NULL;
                """,
            ),
        ]
