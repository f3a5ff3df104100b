"""Which accounts of core's login belong to which tenants, and what they may see there."""

import pgtrigger
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from attachments.tenants import TenantKind
from outbox.guards import never_delete, refuse_when

TENANT_ID = r"^[\x21-\x7e]{1,200}$"


class MembershipRole(models.TextChoices):
    """What a member sees. Whoever began a claim, and nobody else, changes it."""

    MEMBER = "member", "Member: sees and changes the claims that they began"
    REVIEWER = "reviewer", "Reviewer: sees every claim of the tenant as well"


class Membership(models.Model):
    """One account in one tenant, from when it joined until it ended."""

    membership_id = models.UUIDField(primary_key=True)
    user_id = models.BigIntegerField(help_text="The account in core's database.")
    tenant_kind = models.TextField(choices=TenantKind)
    tenant_id = models.TextField()
    role = models.TextField(choices=MembershipRole)
    joined_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    owner_may_update = ("role", "ended_at")

    class Meta:
        db_table = "tenant_memberships"
        constraints = [
            models.CheckConstraint(
                name="membership_tenant_kind_closed", condition=Q(tenant_kind__in=TenantKind.values)
            ),
            models.CheckConstraint(name="membership_tenant", condition=Q(tenant_id__regex=TENANT_ID)),
            models.CheckConstraint(name="membership_role_closed", condition=Q(role__in=MembershipRole.values)),
            models.CheckConstraint(
                name="membership_half_open", condition=Q(ended_at=None) | Q(ended_at__gte=F("joined_at"))
            ),
            models.UniqueConstraint(
                name="membership_once", fields=["user_id", "tenant_kind", "tenant_id"], condition=Q(ended_at=None)
            ),
        ]
        triggers = [
            *never_delete(name="membership", message="A membership is never deleted; it ends."),
            refuse_when(
                name="membership_frozen",
                operation=pgtrigger.Update,
                condition="OLD.ended_at IS NOT NULL OR (NEW.membership_id, NEW.user_id, NEW.tenant_kind, NEW.tenant_id,"
                " NEW.joined_at) IS DISTINCT FROM (OLD.membership_id, OLD.user_id, OLD.tenant_kind, OLD.tenant_id,"
                " OLD.joined_at)",
                message="A membership ends once; who belongs to which tenant by it never changes.",
            ),
        ]
