"""Give a cluster a new token without losing a record (T2, T3, T10).

Two systems must agree, the database and the secret store, and there is no transaction over both. So the order is such
that whatever collectors may hold is accepted, wherever a process dies:

1. one transaction: the new token is accepted from here on (minted);
2. the secret store: PRIMARY is read back and put into SECONDARY, then the new plaintext into PRIMARY;
3. one transaction: the new token is primary, and only now the older ones get their deadline.

If 2 or 3 fails, nothing got a deadline: the new token is unsettled, and the next rotation that ends settles it. A
rotation holds its cluster by being the only minted token there; one that takes longer than `PATIENCE` is overtaken.
Its weakness: an overtaken rotation that was stopped right before its last write can still put its own token into
PRIMARY. That token has a deadline by then; `manage.py otlp_tokens check` tells.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from metering.clusters.audit import ALIAS, Act, Actor, record
from metering.clusters.errors import RotationUnderWay, RotationUnsettled, UnknownCluster, translate
from metering.clusters.grace import rotation_grace
from metering.clusters.models import AuditAction, Cluster, Mode, OtlpToken, TokenState
from metering.clusters.plaintext import Plaintext
from metering.clusters.secret_store import SecretStore, SecretStoreFailed, Slot

PATIENCE = timedelta(seconds=60)
"""How long a rotation may take; more than a secret store's 40 seconds, so that only a dead one is overtaken."""
LAST_WRITE_SECONDS = 45.0
"""After this a rotation writes no more into the store."""

log = structlog.get_logger("metering.clusters.rotate")


@dataclass(frozen=True, slots=True)
class Superseded:
    """A token of before, and the first moment at which it is refused."""

    token_id: UUID
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Rotated:
    """The new token. Its plaintext exists here and in the secret store, and nowhere else."""

    cluster_id: int
    token_id: UUID
    mode: Mode
    plaintext: Plaintext
    issued_at: datetime
    grace: timedelta
    superseded: tuple[Superseded, ...]


def rotate(*, cluster_id: int, actor: Actor, store: SecretStore, mode: Mode | None = None) -> Rotated:
    """A new PRIMARY token for the cluster; `mode` also becomes the mode of its later tokens.

    Raises `UnknownCluster`, `RotationUnderWay`, `RotationUnsettled`, or a database error. Must be called outside any
    transaction.
    """
    plaintext, began = Plaintext.fresh(prefix="otlp"), time.monotonic()
    with _refusals_translated(), transaction.atomic(using=ALIAS, durable=True):
        token = _mint(cluster_id, plaintext, mode, actor)
    log.info("otlp_token_minted", cluster_id=cluster_id, token_id=token.token_id)
    try:
        _hand_over(cluster_id, plaintext, store, until=began + LAST_WRITE_SECONDS)
    except SecretStoreFailed as error:
        log.error("otlp_token_not_handed_over", cluster_id=cluster_id, token_id=token.token_id, error=str(error))
        with transaction.atomic(using=ALIAS, durable=True):
            _lock(cluster_id)
            _unsettle(_of(cluster_id).filter(token_id=token.token_id), cluster_id, actor)
        raise RotationUnsettled(f"{error} {RotationUnsettled.__doc__}") from error
    with transaction.atomic(using=ALIAS, durable=True):
        superseded, grace = _settle(cluster_id, token, actor), rotation_grace()
    log.info("otlp_token_rotated", cluster_id=cluster_id, token_id=token.token_id, superseded=len(superseded))
    return Rotated(cluster_id, token.token_id, Mode(token.mode), plaintext, token.issued_at, grace, superseded)


def _of(cluster_id: int) -> "QuerySet[OtlpToken]":
    return OtlpToken.objects.using(ALIAS).filter(cluster_id=cluster_id)


def _lock(cluster_id: int) -> Cluster:
    """The cluster's row, held until the transaction ends: what happens to its tokens follows one another."""
    cluster = Cluster.objects.using(ALIAS).select_for_update(no_key=True).filter(cluster_id=cluster_id).first()
    if cluster is None:
        raise UnknownCluster(f"{cluster_id}: {UnknownCluster.__doc__}")
    return cluster


def _mint(cluster_id: int, plaintext: Plaintext, mode: Mode | None, actor: Actor) -> OtlpToken:
    cluster = _lock(cluster_id)
    under_way = _of(cluster_id).filter(state=TokenState.MINTED)
    if under_way.filter(issued_at__gt=Now() - PATIENCE).exists():
        raise RotationUnderWay(f"Cluster {cluster_id}: {RotationUnderWay.__doc__}")
    _unsettle(under_way, cluster_id, actor)
    if mode is not None and mode != cluster.token_mode:
        Cluster.objects.using(ALIAS).filter(cluster_id=cluster_id).update(token_mode=mode)
        record(actor, [Act(AuditAction.CLUSTER_CHANGED, cluster_id, detail=f"mode {mode.value}")])
    token = OtlpToken(
        token_id=uuid7(), cluster_id=cluster_id, token_sha256=plaintext.sha256, mode=mode or cluster.token_mode
    )
    token.save(using=ALIAS, force_insert=True)
    token.refresh_from_db(using=ALIAS, fields=["issued_at"])
    record(actor, [Act(AuditAction.TOKEN_MINTED, cluster_id, token.token_id, detail=f"mode {token.mode}")])
    return token


def _unsettle(tokens: "QuerySet[OtlpToken]", cluster_id: int, actor: Actor) -> None:
    """Say of minted tokens that their hand-over came to no known end."""
    left = list(tokens.filter(state=TokenState.MINTED).values_list("token_id", flat=True))
    _of(cluster_id).filter(token_id__in=left).update(state=TokenState.UNSETTLED)
    record(actor, [Act(AuditAction.TOKEN_UNSETTLED, cluster_id, token_id) for token_id in left])


def _hand_over(cluster_id: int, plaintext: Plaintext, store: SecretStore, *, until: float) -> None:
    present = store.read(cluster_id=cluster_id, slot=Slot.PRIMARY)
    if present is not None and _is_accepted(cluster_id, Plaintext(present)):
        store.write(cluster_id=cluster_id, slot=Slot.SECONDARY, secret=present)
    elif present is not None:
        log.warning("otlp_secondary_not_kept", cluster_id=cluster_id)
    if time.monotonic() > until:
        raise SecretStoreFailed("The secret store took too long to be written to safely.")
    store.write(cluster_id=cluster_id, slot=Slot.PRIMARY, secret=plaintext.text)


def _is_accepted(cluster_id: int, plaintext: Plaintext) -> bool:
    """Whether it is worth keeping: a token of this cluster that is neither revoked nor expired."""
    found = _of(cluster_id).filter(token_sha256=plaintext.sha256).exclude(state=TokenState.REVOKED)
    return found.exclude(expires_at__lte=Now()).exists()


def _settle(cluster_id: int, token: OtlpToken, actor: Actor) -> tuple[Superseded, ...]:
    _lock(cluster_id)
    older = _of(cluster_id).filter(state__in=(TokenState.PRIMARY, TokenState.UNSETTLED)).exclude(pk=token.pk)
    ended = list(older.values_list("token_id", flat=True))
    _of(cluster_id).filter(token_id__in=ended).update(
        state=TokenState.SUPERSEDED, superseded_at=Now(), expires_at=Now() + rotation_grace()
    )
    settled = _of(cluster_id).filter(token_id=token.token_id, state=TokenState.MINTED)
    if settled.update(state=TokenState.PRIMARY, handed_over_at=Now()) != 1:
        raise RotationUnsettled(f"It was overtaken by a later one, or revoked. {RotationUnsettled.__doc__}")
    deadlines = _of(cluster_id).filter(token_id__in=ended).order_by("token_id").values_list("token_id", "expires_at")
    superseded = tuple(Superseded(token_id, at) for token_id, at in deadlines if at is not None)
    record(
        actor,
        [
            *(
                Act(AuditAction.TOKEN_SUPERSEDED, cluster_id, one.token_id, f"accepted until {one.expires_at:%FT%TZ}")
                for one in superseded
            ),
            Act(AuditAction.TOKEN_PRIMARY, cluster_id, token.token_id),
        ],
    )
    return superseded


@contextmanager
def _refusals_translated() -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        translate(error)
