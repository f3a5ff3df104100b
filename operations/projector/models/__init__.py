"""The projector's tables: what was applied to which projection, and what still waits."""

from operations.projector.models.aggregate import GapState, ProjectionAggregate, RevisionGap
from operations.projector.models.projection import ActiveProjection, ProjectionBuildRun, ProjectionVersion
from operations.projector.models.receipt import ProjectionAppliedReceipt
from operations.projector.models.source import SourceEvent

__all__ = [
    "ActiveProjection",
    "GapState",
    "ProjectionAggregate",
    "ProjectionAppliedReceipt",
    "ProjectionBuildRun",
    "ProjectionVersion",
    "RevisionGap",
    "SourceEvent",
]
