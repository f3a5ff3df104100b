"""Give a connector a new secret, and end older ones (C4). One transaction each; authentication reads at every request.

While the grace lasts, what is signed with the new secret, with the old one, or with both, is accepted. A secret that
leaked is rotated and then revoked: a revocation holds from its commit on.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from attachments.connectors.act import ALIAS, record
from attachments.connectors.errors import TooManySecrets, UnknownConnector, UnknownSecret, translate
from attachments.connectors.models import ActKind, Connector, ConnectorSecret, SecretState
from attachments.connectors.sealing import seal
from attachments.connectors.signature import Secret
from attachments.connectors.turn import take_turn

MOST_ACCEPTED = 8
"""Secrets of one connector that are accepted at once; each is tried at every request."""

log = structlog.get_logger("attachments.connectors")


@dataclass(frozen=True, slots=True)
class Issued:
    """A new secret. Its plaintext exists here and at the provider, and nowhere else."""

    secret_id: UUID
    secret: Secret


@dataclass(frozen=True, slots=True)
class Rotated:
    """The new secret; when the one before it is first refused, None if there was none."""

    issued: Issued
    superseded_until: datetime | None


def rotate(*, connector_id: UUID, actor: str, secret: Secret | None = None) -> Rotated:
    """A fresh secret, or the one that the provider issued, becomes current; the one before keeps its grace.

    Raises `UnknownConnector`, `TooManySecrets`, `SecretUsedBefore`.
    """
    try:
        with transaction.atomic(using=ALIAS, durable=True):
            _lock(connector_id)
            if _of(connector_id).filter(accepted()).count() >= MOST_ACCEPTED:
                raise TooManySecrets(TooManySecrets.__doc__)
            until = _supersede(connector_id, actor)
            issued = issue(connector_id=connector_id, secret=secret or Secret.fresh(), actor=actor)
    except DatabaseError as error:
        translate(error)
    log.info("connector_secret_rotated", connector_id=str(connector_id), issued=str(issued.secret_id))
    return Rotated(issued, until)


def issue(*, connector_id: UUID, secret: Secret, actor: str) -> Issued:
    """Store a secret as the current one, inside the caller's transaction."""
    secret_id = uuid7()
    sealed = seal(secret, connector_id=connector_id, secret_id=secret_id)
    ConnectorSecret.objects.using(ALIAS).create(
        secret_id=secret_id,
        connector_id=connector_id,
        sealed=sealed.data,
        sealed_with=sealed.sealed_with,
        secret_sha256=secret.sha256,
    )
    record(kind=ActKind.SECRET_CURRENT, actor=actor, connector_id=connector_id, secrets=[secret_id])
    return Issued(secret_id, secret)


def revoke(*, connector_id: UUID, actor: str, secret_id: UUID | None = None) -> int:
    """Refuse a secret from now on, or all that the connector has; how many were not revoked before.

    Raises `UnknownConnector`, `UnknownSecret`. Without a current secret nothing is accepted until the next rotation.
    """
    with transaction.atomic(using=ALIAS, durable=True):
        _lock(connector_id)
        wanted = _of(connector_id) if secret_id is None else _of(connector_id).filter(secret_id=secret_id)
        if secret_id is not None and not wanted.exists():
            raise UnknownSecret(f"{secret_id}: {UnknownSecret.__doc__}")
        living = list(wanted.exclude(state=SecretState.REVOKED).values_list("secret_id", flat=True))
        _of(connector_id).filter(secret_id__in=living).update(state=SecretState.REVOKED, revoked_at=Now())
        record(kind=ActKind.SECRET_REVOKED, actor=actor, connector_id=connector_id, secrets=living)
    for one in living:
        log.info("connector_secret_revoked", connector_id=str(connector_id), revoked=str(one))
    return len(living)


def accepted() -> Q:
    """The condition that a secret is accepted at this moment, by the database's clock."""
    return Q(state=SecretState.CURRENT) | Q(state=SecretState.SUPERSEDED, expires_at__gt=Now())


def _supersede(connector_id: UUID, actor: str) -> datetime | None:
    current = _of(connector_id).filter(state=SecretState.CURRENT).first()
    if current is None:
        return None
    grace = timedelta(seconds=settings.CONNECTOR_SECRET_GRACE)
    _of(connector_id).filter(pk=current.pk, state=SecretState.CURRENT).update(
        state=SecretState.SUPERSEDED, superseded_at=Now(), expires_at=Now() + grace
    )
    record(kind=ActKind.SECRET_SUPERSEDED, actor=actor, connector_id=connector_id, secrets=[current.pk])
    current.refresh_from_db(using=ALIAS, fields=["expires_at"])
    return current.expires_at


def _of(connector_id: UUID) -> "QuerySet[ConnectorSecret]":
    return ConnectorSecret.objects.using(ALIAS).filter(connector_id=connector_id)


def _lock(connector_id: UUID) -> None:
    """What happens to the secrets of a connector follows one another."""
    take_turn(ALIAS, "secrets of connector", connector_id)
    if not Connector.objects.using(ALIAS).filter(connector_id=connector_id).exists():
        raise UnknownConnector(f"{connector_id}: {UnknownConnector.__doc__}")
