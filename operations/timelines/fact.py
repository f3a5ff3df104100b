"""What the projector hands to the read model: one proven event, typed."""

from enum import StrEnum
from typing import Any, NamedTuple

from outbox.contracts.envelope import Envelope


class Part(StrEnum):
    """What an event does to the read model (closed)."""

    RUN = "run"
    """Opens the operation: its summary exists from here on."""
    RESERVATION = "reservation"
    """Joins the summary of its run once both are verified against each other."""
    FACT = "fact"
    """Stands in the timeline of its operation."""


class Fact(NamedTuple):
    """One event whose bytes were proven. `payload` is the typed payload of its exact pair."""

    part: Part
    producer: str
    envelope: Envelope
    payload: Any
    data: bytes
    sha256: str
