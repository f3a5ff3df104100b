"""Clusters, their tokens, the keys that say who pays, platform administrators' tokens, and what was done to all these.

No table holds the plaintext of a token. What identifies a row never changes, nothing is deleted, and every change of a
token's state commits together with its audit entry or not at all.
"""

from metering.clusters.models.administrator_token import AdministratorToken
from metering.clusters.models.audit import AdminAuditEntry, AuditAction
from metering.clusters.models.cluster import Cluster, Mode, Sink
from metering.clusters.models.managed_key import ManagedKey
from metering.clusters.models.token import GRACE_FLOOR, TRANSITIONS, OtlpToken, TokenState

__all__ = [
    "GRACE_FLOOR",
    "TRANSITIONS",
    "AdminAuditEntry",
    "AdministratorToken",
    "AuditAction",
    "Cluster",
    "ManagedKey",
    "Mode",
    "OtlpToken",
    "Sink",
    "TokenState",
]
