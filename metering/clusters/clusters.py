"""Create clusters and set what the receiver does otherwise for them: mode, sink of the ramp, rate (T9, T12)."""

from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Final

from django.db import DatabaseError, transaction

from metering.clusters.audit import ALIAS, Act, Actor, record
from metering.clusters.errors import InvalidCluster, UnknownCluster, translate
from metering.clusters.models import AuditAction, Cluster, Mode, Sink


class Unchanged(Enum):
    """Stands where nothing is to change, since None means the receiver's own setting."""

    TOKEN = 0


UNCHANGED: Final = Unchanged.TOKEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Requests per second, sustained, and how many at once."""

    per_second: int
    burst: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What to set; None gives sink and rate back to the receiver's settings."""

    name: str | Unchanged = UNCHANGED
    mode: Mode | Unchanged = UNCHANGED
    sink: Sink | Unchanged | None = UNCHANGED
    rate: Rate | Unchanged | None = UNCHANGED

    def columns(self) -> dict[str, Any]:
        """The columns that change, with their values."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        columns = {
            {"mode": "token_mode"}.get(name, name): value for name, value in given.items() if value is not UNCHANGED
        }
        if "rate" in columns:
            rate = columns.pop("rate")
            columns["rate_per_second"] = rate.per_second if rate else None
            columns["rate_burst"] = rate.burst if rate else None
        return columns


def create_cluster(
    *, cluster_id: int, name: str, mode: Mode, actor: Actor, sink: Sink | None = None, rate: Rate | None = None
) -> bool:
    """Create it. False if exactly this one is there already. Raises `ClusterConflict` or `InvalidCluster`."""
    columns = Change(name=name, mode=mode, sink=sink, rate=rate).columns()
    try:
        if Cluster.objects.using(ALIAS).filter(cluster_id=cluster_id, **columns).exists():
            return False
        with transaction.atomic(using=ALIAS, durable=True):
            Cluster.objects.using(ALIAS).create(cluster_id=cluster_id, **columns)
            record(actor, [Act(AuditAction.CLUSTER_CREATED, cluster_id, detail=_said(columns))])
    except DatabaseError as error:
        translate(error, unfit=InvalidCluster)
    return True


def change_cluster(*, cluster_id: int, change: Change, actor: Actor) -> bool:
    """Set what `change` says. False if it was so already. Raises `UnknownCluster`, `ClusterConflict`, `InvalidCluster`.

    The receiver reads sink and rate with every request's token, so they hold from the next request on; the mode holds
    for tokens that are minted from now on.
    """
    columns = change.columns()
    try:
        with transaction.atomic(using=ALIAS, durable=True):
            cluster = Cluster.objects.using(ALIAS).select_for_update(no_key=True).filter(cluster_id=cluster_id).first()
            if cluster is None:
                raise UnknownCluster(f"{cluster_id}: {UnknownCluster.__doc__}")
            different = {name: value for name, value in columns.items() if getattr(cluster, name) != value}
            if not different:
                return False
            Cluster.objects.using(ALIAS).filter(cluster_id=cluster_id).update(**different)
            record(actor, [Act(AuditAction.CLUSTER_CHANGED, cluster_id, detail=_said(different))])
    except DatabaseError as error:
        translate(error, unfit=InvalidCluster)
    return True


def _said(columns: dict[str, Any]) -> str:
    return ", ".join(
        f"{name.removeprefix('token_').replace('_', ' ')} {'as set for all' if value is None else value}"
        for name, value in columns.items()
    )
