"""Let accounts of core's login belong to tenants, and end that."""

import re
from dataclasses import dataclass
from typing import Literal, cast

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from attachments.claims.errors import InvalidTenant, UnknownAccount, UnknownMember
from attachments.claims.models import Membership, MembershipRole
from attachments.claims.models.membership import TENANT_ID
from config.owners import OWNERS, Role, owner_named

ALIAS = owner_named("attachments").alias
READ_ALIAS = owner_named("attachments").read_alias
CORE_SESSION = next(owner.alias_of(Role.SESSION) for owner in OWNERS if owner.has_sessions)


@dataclass(frozen=True, slots=True)
class Tenant:
    """Who pays."""

    kind: Literal["organization", "personal"]
    id: str

    @classmethod
    def parse(cls, text: str) -> "Tenant":
        """From `kind:id`. Raises `InvalidTenant`."""
        kind, _, name = text.partition(":")
        if kind not in {"organization", "personal"} or not re.fullmatch(TENANT_ID, name):
            raise InvalidTenant(InvalidTenant.__doc__)
        return cls(cast(Literal["organization", "personal"], kind), name)


def account_of(name: str) -> User:
    """The active account of this login name. Raises `UnknownAccount`."""
    account = User.objects.using(CORE_SESSION).filter(username=name, is_active=True).first()
    if account is None:
        raise UnknownAccount(f"{name}: {UnknownAccount.__doc__}")
    return account


def join(*, user_id: int, tenant: Tenant, role: MembershipRole) -> Membership:
    """Let the account belong to the tenant in this role; one that does already gets the role."""
    with transaction.atomic(using=ALIAS, durable=True):
        membership = _open_membership(user_id, tenant)
        if membership is None:
            membership = Membership(
                membership_id=uuid7(), user_id=user_id, tenant_kind=tenant.kind, tenant_id=tenant.id, role=role
            )
            membership.save(using=ALIAS, force_insert=True)
        elif membership.role != role:
            membership.role = role
            membership.save(using=ALIAS, update_fields=["role"])
    return membership


def leave(*, user_id: int, tenant: Tenant) -> None:
    """End the membership; its tokens are refused from now on. Raises `UnknownMember`."""
    with transaction.atomic(using=ALIAS, durable=True):
        membership = _open_membership(user_id, tenant)
        if membership is None:
            raise UnknownMember(UnknownMember.__doc__)
        Membership.objects.using(ALIAS).filter(pk=membership.pk).update(ended_at=Now())


def membership_of(*, user_id: int, tenant: Tenant) -> Membership:
    """The open membership. Raises `UnknownMember`."""
    membership = _open_membership(user_id, tenant)
    if membership is None:
        raise UnknownMember(UnknownMember.__doc__)
    return membership


def _open_membership(user_id: int, tenant: Tenant) -> Membership | None:
    return (
        Membership.objects.using(ALIAS)
        .filter(user_id=user_id, tenant_kind=tenant.kind, tenant_id=tenant.id, ended_at=None)
        .first()
    )
