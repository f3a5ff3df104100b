"""Claims and their items: changed while a claim is a draft, and never after it was submitted."""

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Length, Now
from django.db.models.lookups import LessThanOrEqual

from attachments.claims.models.membership import TENANT_ID
from attachments.tenants import TenantKind
from outbox.guards import Guard, never_truncate, refusal, refuse_when

LONGEST_TEXT = 200
LONGEST_NUMBER = 64


class ClaimState(models.TextChoices):
    """Where a claim stands. `TRANSITIONS` says how the states follow each other."""

    DRAFT = "draft", "Draft: whoever began it may change it and delete it"
    SUBMITTED = "submitted", "Submitted: nothing of it changes any more"


TRANSITIONS: dict[ClaimState, dict[ClaimState, str]] = {
    ClaimState.DRAFT: {ClaimState.SUBMITTED: "submit"},
    ClaimState.SUBMITTED: {},
}


def text_of(field: str, *, longest: int = LONGEST_TEXT) -> Q:
    """The column holds 1 to `longest` characters, none of them a control character."""
    return Q(LessThanOrEqual(Length(field), longest), **{f"{field}__regex": r"^[^[:cntrl:]]+$"})


class Claim(models.Model):
    """One expense claim. Its row lock orders what happens to it, to its items and to their files."""

    claim_id = models.UUIDField(primary_key=True)
    tenant_kind = models.TextField(choices=TenantKind)
    tenant_id = models.TextField()
    created_by = models.BigIntegerField(help_text="The account in core's database.")
    number = models.TextField(help_text="What the tenant calls it.")
    title = models.TextField()
    state = models.TextField(choices=ClaimState, db_default=ClaimState.DRAFT.value)
    created_at = models.DateTimeField(db_default=Now())
    submitted_at = models.DateTimeField(null=True)

    owner_may_update = ("title", "state", "submitted_at")
    owner_may_delete = True

    class Meta:
        db_table = "claims"
        constraints = [
            models.CheckConstraint(name="claim_tenant_kind_closed", condition=Q(tenant_kind__in=TenantKind.values)),
            models.CheckConstraint(name="claim_tenant", condition=Q(tenant_id__regex=TENANT_ID)),
            models.CheckConstraint(name="claim_state_closed", condition=Q(state__in=ClaimState.values)),
            models.CheckConstraint(name="claim_number", condition=text_of("number", longest=LONGEST_NUMBER)),
            models.CheckConstraint(name="claim_title", condition=text_of("title")),
            models.CheckConstraint(
                name="claim_submitted_has_time",
                condition=Q(state=ClaimState.DRAFT, submitted_at=None)
                | Q(state=ClaimState.SUBMITTED, submitted_at__isnull=False),
            ),
            models.UniqueConstraint(name="claim_number_once", fields=["tenant_kind", "tenant_id", "number"]),
        ]
        indexes = [
            models.Index(name="claim_of_tenant", fields=["tenant_kind", "tenant_id", "claim_id"]),
            models.Index(name="claim_of_person", fields=["tenant_kind", "tenant_id", "created_by", "claim_id"]),
        ]
        triggers = [
            never_truncate(name="claim", message="Claims are deleted one by one, as drafts."),
            refuse_when(
                name="claim_born_draft",
                operation=pgtrigger.Insert,
                condition="NEW.state IS DISTINCT FROM 'draft'",
                message="A claim begins as a draft.",
            ),
            refuse_when(
                name="claim_frozen",
                operation=pgtrigger.Update,
                condition="(NEW.claim_id, NEW.tenant_kind, NEW.tenant_id, NEW.created_by, NEW.number, NEW.created_at)"
                " IS DISTINCT FROM (OLD.claim_id, OLD.tenant_kind, OLD.tenant_id, OLD.created_by, OLD.number,"
                " OLD.created_at)",
                message="Whose claim it is, its id and its number never change.",
            ),
            refuse_when(
                name="claim_submitted_stays",
                operation=pgtrigger.Update | pgtrigger.Delete,
                condition="OLD.state <> 'draft'",
                message="A submitted claim neither changes nor is it deleted.",
            ),
        ]


def only_in_drafts(*, name: str, of: str) -> Guard:
    """Refuse a change below a claim that is no draft. `of` is SQL for the claim's id over the row `part`.

    The claim's row is locked for share, so a submission and a change below it never pass each other. To which claim a
    row belongs never changes, so one of its versions is enough.
    """
    return Guard(
        name=name,
        when=pgtrigger.Before,
        operation=pgtrigger.Insert | pgtrigger.Update | pgtrigger.Delete,
        declare=[("part", "record"), ("standing", "text")],
        func=f"""
            IF TG_OP = 'DELETE' THEN part := OLD; ELSE part := NEW; END IF;
            SELECT c.state INTO standing FROM public.claims c WHERE c.claim_id = {of} FOR SHARE;
            IF standing IS DISTINCT FROM 'draft' THEN
                {refusal(name, "Below a claim that is no draft nothing changes.")}
            END IF;
            RETURN part;
        """,
    )


class ClaimItem(models.Model):
    """One expense of a claim."""

    item_id = models.UUIDField(primary_key=True)
    claim = models.ForeignKey(Claim, on_delete=models.PROTECT, db_index=False, related_name="items")
    description = models.TextField()
    amount_minor = models.BigIntegerField(help_text="In the smallest unit of its currency.")
    currency = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    owner_may_update = ("description", "amount_minor", "currency")
    owner_may_delete = True

    class Meta:
        db_table = "claim_items"
        verbose_name = "item"
        constraints = [
            models.CheckConstraint(name="claim_item_description", condition=text_of("description")),
            models.CheckConstraint(name="claim_item_amount", condition=Q(amount_minor__gte=0)),
            models.CheckConstraint(name="claim_item_currency", condition=Q(currency__regex=r"^[A-Z]{3}$")),
        ]
        indexes = [models.Index(name="claim_item_of", fields=["claim", "item_id"])]
        triggers = [
            never_truncate(name="claim_item", message="Items are deleted with their drafts."),
            only_in_drafts(name="claim_item_in_draft", of="part.claim_id"),
            refuse_when(
                name="claim_item_frozen",
                operation=pgtrigger.Update,
                condition="(NEW.item_id, NEW.claim_id, NEW.created_at)"
                " IS DISTINCT FROM (OLD.item_id, OLD.claim_id, OLD.created_at)",
                message="An item stays in its claim.",
            ),
        ]
