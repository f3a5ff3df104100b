"""Attachments: what a file is called, and under which ids it is stored (C5)."""

import pgtrigger
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Length, Now
from django.db.models.lookups import LessThanOrEqual

from attachments.claims.models.claim import ClaimItem, only_in_drafts
from outbox.guards import is_sha256, never_truncate, refuse_when

LONGEST_NAME = 255
LONGEST_MEDIA_TYPE = 127


class Attachment(models.Model):
    """One attachment of an item. Each content is stored under an id of its own, which the committed row names."""

    attachment_id = models.UUIDField(primary_key=True)
    item = models.ForeignKey(ClaimItem, on_delete=models.PROTECT, db_index=False, related_name="attachments")
    origin_sha256 = models.TextField(help_text="Keyed hash of the upload that made it; the same upload makes it once.")
    content_id = models.UUIDField(unique=True, help_text="Under which its file is stored.")
    name = models.TextField(help_text="As it was sent, in NFC; no part of any path.")
    media_type = models.TextField(help_text="As it was sent. It is never served as anything but a download.")
    size_bytes = models.BigIntegerField()
    content_sha256 = models.TextField()
    created_at = models.DateTimeField(db_default=Now())
    stored_at = models.DateTimeField(db_default=Now(), help_text="When this content came.")

    owner_may_update = ("content_id", "name", "media_type", "size_bytes", "content_sha256", "stored_at")
    owner_may_delete = True

    class Meta:
        db_table = "claim_attachments"
        constraints = [
            models.CheckConstraint(
                name="claim_attachment_name",
                condition=Q(LessThanOrEqual(Length("name"), LONGEST_NAME), name__regex=r"^[^[:cntrl:]]+$"),
            ),
            models.CheckConstraint(
                name="claim_attachment_media_type",
                condition=Q(LessThanOrEqual(Length("media_type"), LONGEST_MEDIA_TYPE), media_type__regex=r"^[!-~]+$"),
            ),
            models.CheckConstraint(name="claim_attachment_size", condition=Q(size_bytes__gte=1)),
            models.CheckConstraint(name="claim_attachment_digest", condition=is_sha256("content_sha256")),
            models.CheckConstraint(name="claim_attachment_origin", condition=is_sha256("origin_sha256")),
            models.CheckConstraint(name="claim_attachment_order", condition=Q(stored_at__gte=F("created_at"))),
            models.UniqueConstraint(name="claim_attachment_once", fields=["item", "origin_sha256"]),
        ]
        indexes = [models.Index(name="claim_attachment_of", fields=["item", "attachment_id"])]
        triggers = [
            never_truncate(name="claim_attachment", message="Attachments are deleted with their drafts."),
            only_in_drafts(
                name="claim_attachment_in_draft",
                of="(SELECT i.claim_id FROM public.claim_items i WHERE i.item_id = part.item_id)",
            ),
            refuse_when(
                name="claim_attachment_frozen",
                operation=pgtrigger.Update,
                condition="(NEW.attachment_id, NEW.item_id, NEW.origin_sha256, NEW.created_at) IS DISTINCT FROM"
                " (OLD.attachment_id, OLD.item_id, OLD.origin_sha256, OLD.created_at)",
                message="An attachment stays in its item, made by the upload that made it.",
            ),
            refuse_when(
                name="claim_attachment_fresh",
                operation=pgtrigger.Update,
                condition="(NEW.content_sha256, NEW.size_bytes) IS DISTINCT FROM (OLD.content_sha256, OLD.size_bytes)"
                " AND NEW.content_id IS NOT DISTINCT FROM OLD.content_id",
                message="Another content is stored under another id.",
            ),
        ]
