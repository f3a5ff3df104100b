"""Core's facts of an admission. One outcome per operation; a run never stands without its manifest, its wallet
reservation and both its events, which the database proves when the transaction commits.
"""

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from outbox.contracts.canonical import DIGEST_ALGORITHM
from outbox.guards import Guard, append_only, is_sha256, refusal

CANDIDATE_MATCHES = "NEW.digest IS DISTINCT FROM encode(sha256(convert_to(NEW.candidate, 'UTF8')), 'hex')"


class OutcomeState(models.TextChoices):
    """How an operation ended. Both states share one unique key, so whoever is second finds out who was first."""

    ADMITTED = "admitted", "Admitted: the run exists"
    REFUSED = "refused", "Refused: the run will never exist"


class AdmissionOutcome(models.Model):
    """The one end of one operation. Operations that left nothing behind (no funds, no price) have none."""

    operation_id = models.TextField(primary_key=True)
    request_sha256 = models.TextField()
    state = models.TextField(choices=OutcomeState)
    run = models.OneToOneField("Run", on_delete=models.PROTECT, null=True, related_name="+")
    admission_refusal = models.OneToOneField("StoredRefusal", on_delete=models.PROTECT, null=True)
    decided_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "admission_outcomes"
        constraints = [
            models.CheckConstraint(name="admission_outcome_digest", condition=is_sha256("request_sha256")),
            models.CheckConstraint(
                name="admission_outcome_shape",
                condition=Q(state="admitted", run__isnull=False, admission_refusal=None)
                | Q(state="refused", run=None, admission_refusal__isnull=False),
            ),
            models.UniqueConstraint(name="admission_outcome_run", fields=["operation_id", "run"]),
        ]
        triggers = append_only(name="admission_outcome", message="The outcome of an operation never changes.")


class Run(models.Model):
    """An admitted run."""

    run_id = models.TextField(primary_key=True)
    # The composite foreign keys stand in sql/admission_is_whole.sql.
    operation = models.OneToOneField(
        AdmissionOutcome, on_delete=models.PROTECT, db_constraint=False, related_name="admitted_run"
    )
    tenant_kind = models.TextField()
    tenant_id = models.TextField()
    workspace_id = models.TextField()
    project_id = models.TextField(null=True)
    billing_account_id = models.TextField()
    billing_reservation = models.OneToOneField(
        "WalletReservation", on_delete=models.PROTECT, db_constraint=False, related_name="+"
    )
    run_admission_manifest = models.OneToOneField(
        "StoredManifest", on_delete=models.PROTECT, db_constraint=False, related_name="+"
    )
    run_created_event_id = models.UUIDField(unique=True)
    admitted_at = models.DateTimeField()

    class Meta:
        db_table = "runs"
        constraints = [
            models.CheckConstraint(name="run_tenant_kind", condition=Q(tenant_kind__in=("organization", "personal")))
        ]
        triggers = [
            *append_only(name="run", message="An admitted run never changes."),
            Guard(
                name="run_is_whole",
                when=pgtrigger.After,
                operation=pgtrigger.Insert,
                timing=pgtrigger.Deferred,
                declare=[("manifest", "run_admission_manifests"), ("wallet", "wallet_reservations")],
                func=f"""
                    SELECT * INTO manifest FROM public.run_admission_manifests m
                     WHERE m.run_admission_manifest_ref = NEW.run_admission_manifest_id;
                    SELECT * INTO wallet FROM public.wallet_reservations w
                     WHERE w.billing_reservation_id = NEW.billing_reservation_id;
                    IF (starts_with(
                            manifest.candidate,
                            '{{"billingAccountId":' || to_json(NEW.billing_account_id)::text
                            || ',"billingReservationId":' || to_json(NEW.billing_reservation_id)::text
                            || ',"currency":' || to_json(wallet.currency)::text || ',"estimatedQuantities":[')
                        AND (manifest.candidate::json ->> 'holdAmountPicos') = wallet.hold_amount_picos::text
                        AND (manifest.candidate::json ->> 'operationId') = NEW.operation_id
                        AND (manifest.candidate::json ->> 'projectId') IS NOT DISTINCT FROM NEW.project_id
                        AND right(manifest.candidate, length(
                            ',"runId":' || to_json(NEW.run_id)::text || ',"tenantId":' || to_json(NEW.tenant_id)::text
                            || ',"tenantKind":' || to_json(NEW.tenant_kind)::text
                            || ',"workspaceId":' || to_json(NEW.workspace_id)::text || '}}'))
                          = ',"runId":' || to_json(NEW.run_id)::text || ',"tenantId":' || to_json(NEW.tenant_id)::text
                            || ',"tenantKind":' || to_json(NEW.tenant_kind)::text
                            || ',"workspaceId":' || to_json(NEW.workspace_id)::text || '}}'
                        AND wallet.billing_account_id = NEW.billing_account_id) IS NOT TRUE THEN
                        {refusal("run_is_whole", "The run, its manifest and its wallet reservation differ.")}
                    END IF;
                    IF NOT EXISTS (SELECT 1 FROM public.outbox_events e
                                    WHERE e.event_id = NEW.run_created_event_id AND e.event_type = 'run.created@2.0'
                                      AND e.aggregate_id = NEW.run_id)
                       OR NOT EXISTS (SELECT 1 FROM public.outbox_events e
                                    WHERE e.event_id = wallet.wallet_reserved_event_id
                                      AND e.event_type = 'wallet.reserved@2.0'
                                      AND e.aggregate_id = NEW.billing_reservation_id) THEN
                        {refusal("run_has_its_events", "A run is committed together with both its events.")}
                    END IF;
                    RETURN NULL;
                """,
            ),
        ]


class StoredManifest(models.Model):
    """`RunAdmissionManifest@1`: the text its digest covers; ref, digest and time stand beside it."""

    run_admission_manifest_ref = models.TextField(primary_key=True)
    schema_version = models.TextField()
    digest_algorithm_version = models.TextField()
    digest = models.TextField()
    candidate = models.TextField(help_text="The canonical text that the digest covers, byte for byte.")
    run = models.OneToOneField(Run, on_delete=models.PROTECT, related_name="manifest")
    admitted_at = models.DateTimeField()

    class Meta:
        db_table = "run_admission_manifests"
        constraints = [
            models.CheckConstraint(
                name="run_admission_manifest_version",
                condition=Q(schema_version="1", digest_algorithm_version=DIGEST_ALGORITHM),
            ),
            models.UniqueConstraint(name="run_admission_manifest_run", fields=["run", "run_admission_manifest_ref"]),
        ]
        triggers = [
            *append_only(name="run_admission_manifest", message="A manifest never changes."),
            Guard(
                name="run_admission_manifest_digest",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                condition=pgtrigger.Condition(f"({CANDIDATE_MATCHES})"),
                func=refusal("run_admission_manifest_digest", "The digest is not the SHA-256 of the stored text."),
            ),
        ]


class WalletReservation(models.Model):
    """What billing holds for a run, as core admitted it (pico-units of the currency)."""

    billing_reservation_id = models.TextField(primary_key=True)
    run = models.OneToOneField(Run, on_delete=models.PROTECT, related_name="wallet_reservation")
    billing_account_id = models.TextField()
    currency = models.TextField()
    hold_amount_picos = models.DecimalField(max_digits=38, decimal_places=0)
    wallet_reserved_event_id = models.UUIDField(unique=True)
    reserved_at = models.DateTimeField()

    class Meta:
        db_table = "wallet_reservations"
        constraints = [
            models.CheckConstraint(name="wallet_reservation_not_negative", condition=Q(hold_amount_picos__gte=0)),
            models.UniqueConstraint(name="wallet_reservation_run", fields=["run", "billing_reservation_id"]),
        ]
        triggers = append_only(name="wallet_reservation", message="A wallet reservation never changes.")


class StoredRefusal(models.Model):
    """`AdmissionRefusal@1`: that an operation's run will never exist."""

    admission_refusal_ref = models.TextField(primary_key=True)
    schema_version = models.TextField()
    digest_algorithm_version = models.TextField()
    digest = models.TextField()
    candidate = models.TextField(help_text="The canonical text that the digest covers, byte for byte.")
    reason = models.TextField()
    refused_at = models.DateTimeField()

    class Meta:
        db_table = "admission_refusals"
        constraints = [
            models.CheckConstraint(
                name="admission_refusal_version",
                condition=Q(schema_version="1", digest_algorithm_version=DIGEST_ALGORITHM),
            ),
            models.CheckConstraint(
                name="admission_refusal_reason", condition=Q(reason__in=("core_failed", "admission_abandoned"))
            ),
        ]
        triggers = [
            *append_only(name="admission_refusal", message="A refusal never changes."),
            Guard(
                name="admission_refusal_digest",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                condition=pgtrigger.Condition(f"({CANDIDATE_MATCHES})"),
                func=refusal("admission_refusal_digest", "The digest is not the SHA-256 of the stored text."),
            ),
        ]
