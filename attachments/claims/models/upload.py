"""What was uploaded, once per identity: the evidence beside which usage is held (C5, C6)."""

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from attachments.claims.models.membership import TENANT_ID
from attachments.tenants import TenantKind
from outbox.guards import is_sha256, never_delete, refuse_when


class AttachmentUpload(models.Model):
    """One upload that committed. It outlives what it uploaded, and holds no name and no identity in the clear.

    Repeated, it is the same row: the same identity stands for the same bytes for ever.
    """

    upload_sha256 = models.TextField(primary_key=True, help_text="Keyed hash of its identity, as billing knows it.")
    tenant_kind = models.TextField(choices=TenantKind)
    tenant_id = models.TextField()
    claim_id = models.UUIDField()
    item_id = models.UUIDField()
    size_bytes = models.BigIntegerField()
    content_sha256 = models.TextField()
    is_metered = models.BooleanField(help_text="Whether quota was held for it, so that its size is counted.")
    uploaded_at = models.DateTimeField(db_default=Now())

    owner_may_update = ("is_metered",)

    class Meta:
        db_table = "attachment_uploads"
        verbose_name = "upload"
        constraints = [
            models.CheckConstraint(name="attachment_upload_identity", condition=is_sha256("upload_sha256")),
            models.CheckConstraint(name="attachment_upload_digest", condition=is_sha256("content_sha256")),
            models.CheckConstraint(name="attachment_upload_size", condition=Q(size_bytes__gte=1)),
            models.CheckConstraint(
                name="attachment_upload_tenant_kind", condition=Q(tenant_kind__in=TenantKind.values)
            ),
            models.CheckConstraint(name="attachment_upload_tenant", condition=Q(tenant_id__regex=TENANT_ID)),
        ]
        indexes = [
            models.Index(
                name="attachment_upload_of", fields=["tenant_kind", "tenant_id", "uploaded_at", "upload_sha256"]
            ),
            models.Index(name="attachment_upload_by_time", fields=["uploaded_at", "upload_sha256"]),
        ]
        triggers = [
            *never_delete(name="attachment_upload", message="An upload that committed stays on record."),
            refuse_when(
                name="attachment_upload_frozen",
                operation=pgtrigger.Update,
                condition="OLD.is_metered OR NOT NEW.is_metered OR (NEW.upload_sha256, NEW.tenant_kind, NEW.tenant_id,"
                " NEW.claim_id, NEW.item_id, NEW.size_bytes, NEW.content_sha256, NEW.uploaded_at) IS DISTINCT FROM"
                " (OLD.upload_sha256, OLD.tenant_kind, OLD.tenant_id, OLD.claim_id, OLD.item_id, OLD.size_bytes,"
                " OLD.content_sha256, OLD.uploaded_at)",
                message="Of an upload only this changes, once: that it is counted after all.",
            ),
        ]
