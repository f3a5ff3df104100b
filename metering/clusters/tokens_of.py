"""What stands behind a cluster: its tokens, and whether the secret store holds what the database calls primary."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from config.owners import owner_named
from metering.clusters.errors import UnknownCluster
from metering.clusters.models import Cluster, OtlpToken, TokenState
from metering.clusters.plaintext import Plaintext
from metering.clusters.secret_store import SecretStore, Slot

ALIAS = owner_named("metering").read_alias
MOST = 200
"""Tokens that a list shows, the newest; a cluster that rotates every day has fewer in half a year."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The newest tokens of a cluster first, and whether older ones are left out."""

    tokens: tuple[OtlpToken, ...]
    truncated: bool


def tokens_of(*, cluster_id: int) -> Tokens:
    """Raises `UnknownCluster`."""
    if not Cluster.objects.using(ALIAS).filter(cluster_id=cluster_id).exists():
        raise UnknownCluster(f"{cluster_id}: {UnknownCluster.__doc__}")
    rows = list(OtlpToken.objects.using(ALIAS).filter(cluster_id=cluster_id).order_by("-token_id")[: MOST + 1])
    return Tokens(tuple(rows[:MOST]), truncated=len(rows) > MOST)


def is_accepted(token: OtlpToken, *, now: datetime) -> bool:
    """Whether the receiver lets it in at this moment."""
    return token.state != TokenState.REVOKED and (token.expires_at is None or now < token.expires_at)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A cluster whose collectors are not given its primary token."""

    cluster_id: int
    problem: str


def disagreements(*, store: SecretStore, now: datetime) -> Iterator[Disagreement]:
    """Compare, cluster by cluster, the hash of what the store holds as PRIMARY with the database.

    Raises `SecretStoreFailed`. During a rotation a cluster may be told of that a second later agrees.
    """
    for cluster_id in Cluster.objects.using(ALIAS).order_by("cluster_id").values_list("cluster_id", flat=True):
        present = store.read(cluster_id=cluster_id, slot=Slot.PRIMARY)
        tokens = OtlpToken.objects.using(ALIAS).filter(cluster_id=cluster_id)
        held = tokens.filter(token_sha256=Plaintext(present).sha256).first() if present else None
        if present is None:
            if tokens.exists():
                yield Disagreement(cluster_id, "the store holds no PRIMARY token; rotate")
        elif held is None:
            yield Disagreement(cluster_id, "the store's PRIMARY token is none of this cluster; rotate")
        elif not is_accepted(held, now=now):
            yield Disagreement(cluster_id, f"the store's PRIMARY token {held.token_id} is refused; rotate")
        elif held.state != TokenState.PRIMARY:
            until = f" until {held.expires_at:%FT%TZ}" if held.expires_at else ""
            yield Disagreement(cluster_id, f"the store's PRIMARY token {held.token_id} is {held.state}{until}; rotate")
