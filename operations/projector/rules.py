"""Which events this projector applies, from which producer, and what part each plays in an operation.

An event whose exact pair has no rule here is refused: it is unknown, not merely uninteresting.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import create_model

from operations.timelines.fact import Part
from outbox.contracts.contract import Contract
from outbox.contracts.envelope import Envelope, payload_contract
from upstream.admission.contracts import (
    RUN_CREATED,
    RUN_CREATED_VERSION,
    WALLET_RESERVED,
    WALLET_RESERVED_VERSION,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One exact pair: who may send it, its whole typed envelope, and its part."""

    producer: str
    part: Part
    envelope: type[Envelope]


def rule(event_type: str, schema_version: str, *, producer: str, part: Part) -> Rule:
    """The rule of a pair whose payload contract is registered. Raises `UnknownEvent`."""
    payload: type[Contract] = payload_contract(event_type, schema_version)
    # One model of envelope and payload, so that one pass over the bytes validates both.
    typed = create_model(f"{payload.__name__}Envelope", __base__=Envelope, payload=(payload, ...))
    return Rule(producer=producer, part=part, envelope=typed)


RULES: Mapping[tuple[str, str], Rule] = {
    (RUN_CREATED, RUN_CREATED_VERSION): rule(RUN_CREATED, RUN_CREATED_VERSION, producer="core", part=Part.RUN),
    (WALLET_RESERVED, WALLET_RESERVED_VERSION): rule(
        WALLET_RESERVED, WALLET_RESERVED_VERSION, producer="core", part=Part.RESERVATION
    ),
}
