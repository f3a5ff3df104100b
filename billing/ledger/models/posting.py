"""Postings, their entries, and holds: append-only, balanced, and proven when the transaction commits (M4)."""

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from billing.ledger.models.account import BillingAccount, ChargeSource, LedgerAccount, picos
from outbox.guards import Guard, append_only, is_sha256, never_delete, refusal, refuse_when


class PostingKind(models.TextChoices):
    """Why money moved."""

    TOP_UP = "top_up", "Top-up: funding to wallet"
    HOLD = "hold", "Hold: wallet to held"
    RELEASE = "release", "Release: held back to wallet"
    CHARGE = "charge", "Charge of telemetry: wallet to revenue, and back where a correction lowers it"


class HoldState(models.TextChoices):
    """A hold ends once."""

    HELD = "held", "Held: the whole amount lies on the held account"
    RELEASED = "released", "Released: nothing of it lies there any more; terminal"


class LedgerPosting(models.Model):
    """One movement of one account's money, so of one currency. Its reference is its idempotency key."""

    reference = models.TextField(primary_key=True)
    kind = models.TextField(choices=PostingKind)
    billing_account = models.ForeignKey(BillingAccount, on_delete=models.PROTECT, db_index=False)
    charge_source = models.TextField(null=True, help_text="What this charges the account from, if it charges.")
    content_sha256 = models.TextField()
    entry_count = models.SmallIntegerField()
    posted_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "ledger_postings"
        constraints = [
            models.CheckConstraint(name="ledger_posting_kind_closed", condition=Q(kind__in=PostingKind.values)),
            models.CheckConstraint(name="ledger_posting_content", condition=is_sha256("content_sha256")),
            models.CheckConstraint(
                name="ledger_posting_has_two_sides", condition=Q(entry_count__gte=2, entry_count__lte=1000)
            ),
            models.CheckConstraint(
                name="ledger_posting_charges_from_one_source",
                condition=Q(kind=PostingKind.TOP_UP, charge_source=None)
                | Q(
                    kind__in=(PostingKind.HOLD, PostingKind.RELEASE),
                    charge_source=ChargeSource.RUNS,
                    charge_source__isnull=False,
                )
                | Q(
                    kind=PostingKind.CHARGE,
                    charge_source=ChargeSource.TELEMETRY,
                    charge_source__isnull=False,
                ),
            ),
        ]
        indexes = [
            models.Index(name="ledger_posting_of_account", fields=["billing_account", "posted_at", "reference"]),
            models.Index(name="ledger_posting_by_time", fields=["posted_at", "reference"]),
        ]
        triggers = [
            *append_only(name="ledger_posting", message="A posting never changes; post a correction."),
            Guard(
                name="ledger_posting_balanced",
                when=pgtrigger.After,
                operation=pgtrigger.Insert,
                timing=pgtrigger.Deferred,
                declare=[("lines", "bigint"), ("total", "numeric"), ("own", "boolean"), ("holds", "boolean")],
                func=f"""
                    SELECT count(*), sum(e.amount_picos), bool_and(a.billing_account_id = NEW.billing_account_id),
                           bool_or(e.hold_id IS NOT NULL)
                      INTO lines, total, own, holds
                      FROM public.ledger_entries e
                      JOIN public.ledger_accounts a ON a.ledger_account_id = e.ledger_account_id
                     WHERE e.posting_id = NEW.reference;
                    IF lines IS DISTINCT FROM NEW.entry_count::bigint THEN
                        {refusal("ledger_posting_complete", "A posting has exactly the entries it counts.")}
                    END IF;
                    IF own IS DISTINCT FROM true THEN
                        {refusal("ledger_posting_one_account", "A posting moves money of one billing account.")}
                    END IF;
                    IF total IS DISTINCT FROM 0 THEN
                        {refusal("ledger_posting_balanced", "The entries of a posting sum to zero.")}
                    END IF;
                    -- A hold that this posting opens or closes is proven by the hold's own guard.
                    IF holds AND EXISTS (
                        SELECT 1 FROM public.ledger_entries t JOIN public.ledger_holds h ON h.hold_id = t.hold_id
                         WHERE t.posting_id = NEW.reference AND h.opened_by_id <> NEW.reference
                           AND h.closed_by_id IS DISTINCT FROM NEW.reference
                           AND (SELECT sum(e.amount_picos) FROM public.ledger_entries e WHERE e.hold_id = h.hold_id)
                               IS DISTINCT FROM CASE h.state WHEN 'held' THEN h.amount_picos ELSE 0 END) THEN
                        {refusal("ledger_hold_equals_entries", "A hold's entries sum to what its state says.")}
                    END IF;
                    RETURN NULL;
                """,
            ),
        ]


class LedgerHold(models.Model):
    """Money set aside for one purpose, taken whole and given back whole."""

    hold_id = models.TextField(primary_key=True)
    billing_account = models.ForeignKey(BillingAccount, on_delete=models.PROTECT, db_constraint=False)
    charge_source = models.TextField(db_default=ChargeSource.RUNS)
    currency = models.TextField()
    amount_picos = picos()
    state = models.TextField(choices=HoldState, db_default=HoldState.HELD)
    opened_by = models.OneToOneField(LedgerPosting, on_delete=models.PROTECT, related_name="opened_hold")
    closed_by = models.OneToOneField(LedgerPosting, on_delete=models.PROTECT, null=True, related_name="closed_hold")
    opened_at = models.DateTimeField(db_default=Now())
    closed_at = models.DateTimeField(null=True)

    owner_may_update = ("state", "closed_by_id", "closed_at")

    class Meta:
        db_table = "ledger_holds"
        constraints = [
            models.CheckConstraint(name="ledger_hold_state_closed", condition=Q(state__in=HoldState.values)),
            models.CheckConstraint(name="ledger_hold_not_negative", condition=Q(amount_picos__gte=0)),
            models.CheckConstraint(name="ledger_hold_charges_runs", condition=Q(charge_source=ChargeSource.RUNS)),
            models.CheckConstraint(
                name="ledger_hold_shape",
                condition=Q(state=HoldState.HELD, closed_by=None, closed_at=None)
                | (~Q(state=HoldState.HELD) & Q(closed_by__isnull=False, closed_at__isnull=False)),
            ),
        ]
        triggers = [
            *never_delete(name="ledger_hold", message="A hold is never deleted."),
            refuse_when(
                name="ledger_hold_born_held",
                operation=pgtrigger.Insert,
                condition="NEW.state IS DISTINCT FROM 'held'",
                message="A hold begins as held.",
            ),
            refuse_when(
                name="ledger_hold_ends_once",
                operation=pgtrigger.Update,
                condition="OLD.state <> 'held' OR (NEW.hold_id, NEW.billing_account_id, NEW.charge_source,"
                " NEW.currency, NEW.amount_picos, NEW.opened_by_id, NEW.opened_at) IS DISTINCT FROM (OLD.hold_id,"
                " OLD.billing_account_id, OLD.charge_source, OLD.currency, OLD.amount_picos, OLD.opened_by_id,"
                " OLD.opened_at)",
                message="A hold ends once, and nothing else of it changes.",
            ),
            Guard(
                name="ledger_hold_equals_entries",
                when=pgtrigger.After,
                operation=pgtrigger.Insert | pgtrigger.Update,
                timing=pgtrigger.Deferred,
                func=f"""
                    IF (SELECT coalesce(sum(e.amount_picos), 0) FROM public.ledger_entries e
                         WHERE e.hold_id = NEW.hold_id)
                       IS DISTINCT FROM
                       (SELECT CASE h.state WHEN 'held' THEN h.amount_picos ELSE 0 END
                          FROM public.ledger_holds h WHERE h.hold_id = NEW.hold_id) THEN
                        {refusal("ledger_hold_equals_entries", "A hold's entries sum to what its state says.")}
                    END IF;
                    RETURN NULL;
                """,
            ),
        ]


class LedgerEntry(models.Model):
    """One line of a posting: positive credits the ledger account, negative debits it."""

    pk = models.CompositePrimaryKey("posting_id", "line")
    posting = models.ForeignKey(LedgerPosting, on_delete=models.PROTECT, related_name="entries", db_index=False)
    line = models.SmallIntegerField(help_text="From 1 to the posting's entry count.")
    ledger_account = models.ForeignKey(
        LedgerAccount, on_delete=models.PROTECT, related_name="entries", db_constraint=False
    )
    currency = models.TextField()
    amount_picos = picos()
    hold = models.ForeignKey(LedgerHold, on_delete=models.PROTECT, null=True, related_name="entries", db_index=False)

    class Meta:
        db_table = "ledger_entries"
        verbose_name_plural = "ledger entries"
        constraints = [
            models.CheckConstraint(name="ledger_entry_line_from_1", condition=Q(line__gte=1)),
        ]
        indexes = [
            models.Index(name="ledger_entry_of_hold", fields=["hold"], condition=Q(hold__isnull=False)),
        ]
        triggers = append_only(name="ledger_entry", message="A ledger entry never changes; post a correction.")
