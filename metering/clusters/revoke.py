"""Refuse a token from now on (T2, T10). The receiver asks at every request, so its commit is its effect."""

from uuid import UUID

import structlog
from django.db import transaction
from django.db.models.functions import Now

from metering.clusters.audit import ALIAS, Act, Actor, record
from metering.clusters.errors import UnknownToken
from metering.clusters.models import AuditAction, Cluster, OtlpToken, TokenState

log = structlog.get_logger("metering.clusters.revoke")


def revoke(*, cluster_id: int, token_id: UUID, actor: Actor) -> bool:
    """Whether this call revoked it; False if it was revoked before. Raises `UnknownToken`.

    The secret store is not asked: a store that is away must not keep a leaked token alive, and what stands there of a
    revoked token opens nothing. A revoked PRIMARY leaves its collectors without access until the next rotation.
    """
    with transaction.atomic(using=ALIAS, durable=True):
        Cluster.objects.using(ALIAS).select_for_update(no_key=True).filter(cluster_id=cluster_id).first()
        token = OtlpToken.objects.using(ALIAS).filter(cluster_id=cluster_id, token_id=token_id)
        before = token.values_list("state", flat=True).first()
        if before is None:
            raise UnknownToken(f"{token_id} of cluster {cluster_id}: {UnknownToken.__doc__}")
        if before == TokenState.REVOKED:
            return False
        token.update(state=TokenState.REVOKED, revoked_at=Now())
        record(actor, [Act(AuditAction.TOKEN_REVOKED, cluster_id, token_id, f"was {before}")])
    log.info("otlp_token_revoked", cluster_id=cluster_id, token_id=token_id, before=before)
    return True
