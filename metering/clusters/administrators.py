"""Who may manage the tokens of clusters: accounts of core's login that hold one permission, and their own tokens.

The permission stands in core, beside logins; tokens and audit stand here. Nothing of an account is copied that could
outlive it: whoever shows a token is looked up in core at every request.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from config.owners import OWNERS, Role
from metering.clusters.audit import ALIAS, Act, Actor, record
from metering.clusters.errors import UnknownAccount, UnknownToken
from metering.clusters.models import AdministratorToken, AuditAction, OtlpToken
from metering.clusters.plaintext import Plaintext

CORE, CORE_SESSION = next((owner.alias, owner.alias_of(Role.SESSION)) for owner in OWNERS if owner.has_sessions)
CODENAME = "manage_otlp_tokens"
PERMISSION = f"clusters.{CODENAME}"
GROUP = "administrators"
"""Holds this permission and no other."""


@dataclass(frozen=True, slots=True)
class Minted:
    """An administrator's token: shown once, kept nowhere."""

    token_id: UUID
    plaintext: Plaintext
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Grantee:
    """An account that may manage tokens."""

    account_id: int
    name: str


def grantees() -> list[Grantee]:
    """Everybody who may, by name."""
    accounts = User.objects.using(CORE).filter(is_active=True, groups__name=GROUP).order_by("username")
    return [Grantee(pk, name) for pk, name in accounts.values_list("pk", "username")]


def grant(*, name: str, actor: Actor) -> bool:
    """Let the account manage tokens; one that is not there is made without a password, so it can only show tokens.

    Whether it is new to it. An operator's login keeps everything else as it is.
    """
    with transaction.atomic(using=ALIAS, durable=True):
        record(actor, [Act(AuditAction.ADMINISTRATOR_GRANTED, detail=name)])
    with transaction.atomic(using=CORE, durable=True):
        account = User.objects.using(CORE).filter(username=name).first()
        if account is None:
            account = User(username=name, is_staff=False)
            account.set_unusable_password()
            account.save(using=CORE)
        group, _ = Group.objects.using(CORE).get_or_create(name=GROUP)
        group.permissions.set([_permission()])
        new = not account.groups.filter(pk=group.pk).exists()
        account.groups.add(group)
    return new


def withdraw(*, name: str, actor: Actor) -> None:
    """Take the permission away, and end the account's tokens. Raises `UnknownAccount`."""
    account = User.objects.using(CORE).filter(username=name).first()
    if account is None:
        raise UnknownAccount(f"{name}: {UnknownAccount.__doc__}")
    with transaction.atomic(using=CORE, durable=True):
        for group in Group.objects.using(CORE).filter(name=GROUP):
            account.groups.remove(group)
    with transaction.atomic(using=ALIAS, durable=True):
        record(actor, [Act(AuditAction.ADMINISTRATOR_WITHDRAWN, detail=name)])
        for token_id in _living().filter(account_id=account.pk).values_list("token_id", flat=True):
            _end(token_id, actor)


def mint(*, name: str, life: timedelta, actor: Actor) -> Minted:
    """A token of an account that may manage tokens. Raises `UnknownAccount`."""
    account = User.objects.using(CORE).filter(username=name, is_active=True).first()
    if account is None or not account.groups.filter(name=GROUP, permissions__codename=CODENAME).exists():
        raise UnknownAccount(f"{name}: {UnknownAccount.__doc__}")
    plaintext = Plaintext.fresh(prefix="otlpadmin")
    with transaction.atomic(using=ALIAS, durable=True):
        token = AdministratorToken(
            token_id=uuid7(),
            account_id=account.pk,
            account_name=name,
            token_sha256=plaintext.sha256,
            expires_at=Now() + life,
        )
        token.save(using=ALIAS, force_insert=True)
        token.refresh_from_db(using=ALIAS, fields=["expires_at"])
        record(actor, [Act(AuditAction.ADMINISTRATOR_TOKEN_MINTED, token_id=token.token_id, detail=name)])
    return Minted(token.token_id, plaintext, token.expires_at)


def end(*, token_id: UUID, actor: Actor) -> bool:
    """Refuse an administrator's token from now on; False if it was ended before. Raises `UnknownToken`."""
    with transaction.atomic(using=ALIAS, durable=True):
        if not AdministratorToken.objects.using(ALIAS).filter(token_id=token_id).exists():
            raise UnknownToken(f"{token_id}: no administrator has such a token; see `manage.py administrator list`.")
        return _end(token_id, actor)


def _end(token_id: UUID, actor: Actor) -> bool:
    if not _living().filter(token_id=token_id).update(revoked_at=Now()):
        return False
    record(actor, [Act(AuditAction.ADMINISTRATOR_TOKEN_REVOKED, token_id=token_id)])
    return True


def _living() -> "QuerySet[AdministratorToken]":
    return AdministratorToken.objects.using(ALIAS).filter(revoked_at=None)


def _permission() -> Permission:
    kind = ContentType.objects.db_manager(CORE).get_for_model(OtlpToken, for_concrete_model=False)
    permission, _ = Permission.objects.using(CORE).get_or_create(
        content_type=kind, codename=CODENAME, defaults={"name": "Can rotate and revoke tokens of clusters"}
    )
    return permission
