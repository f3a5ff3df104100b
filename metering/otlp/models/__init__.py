"""Stored events, and what is known about them: conflicts, identities, windows to aggregate, tallies, retention."""

from metering.otlp.models.conflict import Conflict, ConflictReason
from metering.otlp.models.event import EventKind, LlmBillingEvent, ResourceUtilizationEvent
from metering.otlp.models.identity import EventIdentity, IdentityScan
from metering.otlp.models.retention import ExpiredDay, Retention
from metering.otlp.models.tally import Drop, Tally
from metering.otlp.models.window import DirtyWindow

__all__ = [
    "Conflict",
    "ConflictReason",
    "DirtyWindow",
    "Drop",
    "EventIdentity",
    "EventKind",
    "ExpiredDay",
    "IdentityScan",
    "LlmBillingEvent",
    "ResourceUtilizationEvent",
    "Retention",
    "Tally",
]
