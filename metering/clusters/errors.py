"""What this room refuses. Database errors are translated by constraint name, once, here."""

from typing import NoReturn

from django.db import DatabaseError, DataError


class ClustersError(Exception):
    """Refused. Permanent unless a subclass says otherwise; nothing was changed unless a subclass says so."""


class UnknownCluster(ClustersError):
    """There is no such cluster. Permanent: create it with `manage.py clusters create`."""


class UnknownToken(ClustersError):
    """The cluster has no such token. Permanent: list its tokens."""


class ClusterConflict(ClustersError):
    """A cluster with this id or name exists. Permanent: choose another, or change that one."""


class InvalidCluster(ClustersError):
    """A value of the cluster is refused. Permanent: ids and rates are positive, names have 1 to 200 characters."""


class RotationUnderWay(ClustersError):
    """Another rotation of this cluster is under way. Transient: look at the tokens, and repeat in a minute."""


class RotationUnsettled(ClustersError):
    """The new token is accepted, but it is not known whether the secret store has it; every older token stays valid.

    Transient: rotate again, until a rotation ends.
    """


class KeyConflict(ClustersError):
    """A managed key belongs to another organisation already. Permanent: that never changes; nothing was imported."""


class InvalidKey(ClustersError):
    """A managed key is no row of decimal id, organisation and label. Permanent: correct it; nothing was imported."""


class UnknownAccount(ClustersError):
    """There is no such account, or it may not manage tokens. Permanent: `manage.py administrator grant` it first."""


_BY_CONSTRAINT: dict[str, type[ClustersError]] = {
    "clusters_pkey": ClusterConflict,
    "clusters_name_key": ClusterConflict,
    "cluster_id_positive": InvalidCluster,
    "cluster_name": InvalidCluster,
    "cluster_mode_closed": InvalidCluster,
    "cluster_sink_closed": InvalidCluster,
    "cluster_rate_whole": InvalidCluster,
    "otlp_token_one_rotation": RotationUnderWay,
    "managed_key_id_decimal": InvalidKey,
    "managed_key_organization": InvalidKey,
    "managed_key_label": InvalidKey,
}


def translate(error: DatabaseError, *, unfit: type[ClustersError] | None = None) -> NoReturn:
    """Raise what the violated constraint means, or `unfit` for a value that no column can hold (U+0000, 2^63).

    An error that names none of ours is raised again as it is.
    """
    name = getattr(getattr(error.__cause__, "diag", None), "constraint_name", None)
    meaning = _BY_CONSTRAINT.get(name or "", unfit if isinstance(error, DataError) else None)
    if meaning is None:
        raise error
    raise meaning(f"{meaning.__doc__}" + (f" ({name})" if name else "")) from error
