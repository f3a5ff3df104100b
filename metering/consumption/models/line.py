"""What was used in one window, by whom and of what: the lines of consumption, orphans among them (T13)."""

import pgtrigger
from django.contrib.postgres.functions import TransactionNow
from django.db import models
from django.db.models import Q

from metering.clusters.models import Mode
from metering.otlp.fields import MAX_TEXT
from metering.otlp.models import EventKind
from outbox.guards import Guard, is_sha256, never_delete, refusal, refuse_when


def units(**options: object) -> "models.DecimalField[int, int]":
    """A sum of counts; it may exceed 64 bits."""
    return models.DecimalField(max_digits=38, decimal_places=0, **options)  # type: ignore[arg-type]  # options are Django's


class OrphanReason(models.TextChoices):
    """Why nobody can be charged for a line. Its amounts stay with it and are charged to nobody."""

    UNKNOWN_KEY = "unknown_key", "Unknown key: released as soon as the organisation of its key is learnt"
    NO_ORGANIZATION = "no_organization", "No organisation: the cluster's collector states none"
    UNTRUSTED = "untrusted", "Untrusted: a gateway sent it without a key, and its own organisation never decides"


_LLM = Q(kind=EventKind.LLM_BILLING)
_GATEWAY = Q(source_mode=Mode.GATEWAY)
_ORPHAN = Q(organization_id=None, orphan_reason__isnull=False)
TOLD_APART_BY = (
    "kind", "cluster_id", "window_start", "source_mode", "manager_key_id", "stated_organization_id", "namespace",
    "robot_id", "cr_name", "applies_to", "provider",
)  # fmt: skip
"""The columns that the line's digest is of, in its order."""


def _columns(row: str) -> str:
    return ", ".join(f"{row}.{name}" for name in ("line_id", "line_sha256", "first_at", *TOLD_APART_BY))


class ConsumptionLine(models.Model):
    """The sums of all consumable events of one window that agree in who, where and what.

    LLM events of a gateway are told apart by key, model and provider; all others by the organisation that their cluster
    states, by namespace, robot and CR, and by model and provider or type of resource. A line whose events were all
    excluded later stays, with sums of zero.
    """

    line_id = models.BigAutoField(primary_key=True)
    line_sha256 = models.TextField(unique=True, help_text="Of all that tells the line apart.")
    kind = models.TextField(choices=EventKind)
    cluster_id = models.CharField(max_length=19, db_collation="C")
    window_start = models.DateTimeField()
    source_mode = models.TextField(choices=Mode)
    manager_key_id = models.CharField(max_length=MAX_TEXT, null=True)
    stated_organization_id = models.CharField(
        max_length=MAX_TEXT, null=True, help_text="By a cluster of its own events."
    )
    namespace = models.CharField(max_length=MAX_TEXT, null=True)
    robot_id = models.CharField(max_length=MAX_TEXT, null=True)
    cr_name = models.CharField(max_length=MAX_TEXT, null=True)
    applies_to = models.CharField(max_length=MAX_TEXT, help_text="The model, or the type of resource.")
    provider = models.CharField(max_length=MAX_TEXT, null=True)
    organization_id = models.CharField(max_length=MAX_TEXT, null=True, help_text="Who is charged.")
    orphan_reason = models.TextField(choices=OrphanReason, null=True)
    events = models.BigIntegerField()
    prompt_tokens = units(null=True)
    completion_tokens = units(null=True)
    cached_input_tokens = units(null=True)
    samples_above_threshold = models.BigIntegerField(null=True)
    utilization_micros = units(null=True, help_text="The sum of all samples, in millionths.")
    utilization_max = models.FloatField(null=True)
    first_at = models.DateTimeField(db_default=TransactionNow())
    changed_at = models.DateTimeField(db_default=TransactionNow())
    released_at = models.DateTimeField(null=True, help_text="When an orphan found its organisation.")

    owner_may_update = (
        "organization_id",
        "orphan_reason",
        "events",
        "prompt_tokens",
        "completion_tokens",
        "cached_input_tokens",
        "samples_above_threshold",
        "utilization_micros",
        "utilization_max",
        "changed_at",
        "released_at",
    )
    owner_may_execute = (
        "consumption_line_sha256(text, text, timestamptz, text, text, text, text, text, text, text, text)",
    )

    class Meta:
        db_table = "consumption_lines"
        constraints = [
            models.CheckConstraint(name="consumption_line_digest_shape", condition=is_sha256("line_sha256")),
            models.CheckConstraint(name="consumption_line_kind_closed", condition=Q(kind__in=EventKind.values)),
            models.CheckConstraint(name="consumption_line_mode_closed", condition=Q(source_mode__in=Mode.values)),
            models.CheckConstraint(
                name="consumption_line_told_apart",
                condition=Q(
                    _LLM & _GATEWAY,
                    manager_key_id__isnull=False,
                    provider__isnull=False,
                    stated_organization_id=None,
                    namespace=None,
                    robot_id=None,
                    cr_name=None,
                )
                | Q(_LLM & ~_GATEWAY, manager_key_id=None, provider__isnull=False, namespace__isnull=False)
                | Q(~_LLM, manager_key_id=None, provider=None, namespace__isnull=False),
            ),
            models.CheckConstraint(
                name="consumption_line_measures",
                condition=Q(
                    _LLM,
                    events__gte=0,
                    prompt_tokens__gte=0,
                    completion_tokens__gte=0,
                    cached_input_tokens__gte=0,
                    prompt_tokens__isnull=False,
                    completion_tokens__isnull=False,
                    cached_input_tokens__isnull=False,
                    samples_above_threshold=None,
                    utilization_micros=None,
                    utilization_max=None,
                )
                | Q(
                    ~_LLM,
                    events__gte=0,
                    samples_above_threshold__gte=0,
                    samples_above_threshold__lte=models.F("events"),
                    samples_above_threshold__isnull=False,
                    utilization_micros__gte=0,
                    utilization_micros__isnull=False,
                    utilization_max__gte=0,
                    utilization_max__isnull=False,
                    prompt_tokens=None,
                    completion_tokens=None,
                    cached_input_tokens=None,
                ),
            ),
            models.CheckConstraint(
                name="consumption_line_attributed_or_orphan",
                condition=Q(organization_id__isnull=False, orphan_reason=None)
                | Q(_LLM & _GATEWAY, orphan_reason=OrphanReason.UNKNOWN_KEY) & _ORPHAN
                | Q(~_GATEWAY, orphan_reason=OrphanReason.NO_ORGANIZATION) & _ORPHAN
                | Q(~_LLM & _GATEWAY, orphan_reason=OrphanReason.UNTRUSTED) & _ORPHAN,
            ),
            # What a gateway states never decides a charge; what a cluster states of its own events always does.
            models.CheckConstraint(
                name="consumption_line_own_organization",
                condition=Q(organization_id=None)
                | Q(_LLM & _GATEWAY)
                | Q(
                    ~_GATEWAY, organization_id=models.F("stated_organization_id"), stated_organization_id__isnull=False
                ),
            ),
            models.CheckConstraint(
                name="consumption_line_released",
                condition=Q(released_at=None) | Q(_LLM & _GATEWAY, organization_id__isnull=False),
            ),
        ]
        indexes = [
            models.Index(name="consumption_line_of_window", fields=["kind", "cluster_id", "window_start", "line_id"]),
            models.Index(
                name="consumption_line_of_key",
                fields=["manager_key_id", "line_id"],
                condition=Q(manager_key_id__isnull=False),
            ),
            models.Index(
                name="consumption_line_unknown_key",
                fields=["manager_key_id", "line_id"],
                condition=Q(orphan_reason=OrphanReason.UNKNOWN_KEY),
            ),
            models.Index(
                name="consumption_line_orphan_by",
                fields=["orphan_reason", "line_id"],
                condition=Q(orphan_reason__isnull=False),
            ),
            models.Index(name="consumption_line_orphan", fields=["line_id"], condition=Q(orphan_reason__isnull=False)),
            models.Index(name="consumption_line_of_payer", fields=["organization_id", "line_id"]),
        ]
        triggers = [
            *never_delete(name="consumption_line", message="A line of consumption is never deleted."),
            Guard(
                name="consumption_line_digest",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                func=f"""
                    IF NEW.line_sha256 IS DISTINCT FROM public.consumption_line_sha256(
                        {", ".join(f"NEW.{name}" for name in TOLD_APART_BY)}) THEN
                        {refusal("consumption_line_digest", "The digest is not that of what tells the line apart.")}
                    END IF;
                    RETURN NEW;
                """,
            ),
            refuse_when(
                name="consumption_line_frozen",
                operation=pgtrigger.Update,
                condition=f"({_columns('NEW')}) IS DISTINCT FROM ({_columns('OLD')})"
                " OR (OLD.released_at IS NOT NULL AND NEW.released_at IS DISTINCT FROM OLD.released_at)",
                message="What tells a line apart never changes.",
            ),
            refuse_when(
                name="consumption_line_attributed_once",
                operation=pgtrigger.Update,
                condition="OLD.organization_id IS NOT NULL"
                " AND NEW.organization_id IS DISTINCT FROM OLD.organization_id",
                message="A line that found its organisation keeps it: the first answer about a key stands for ever.",
            ),
        ]


class Orphan(ConsumptionLine):
    """A line that nobody is charged for, for a page of its own."""

    class Meta:
        proxy = True
