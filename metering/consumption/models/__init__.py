"""Windows of consumption, the lines of which they consist, and the charges that they owe to billing."""

from metering.consumption.models.charge import TRANSITIONS, ChargeState, ConsumptionCharge
from metering.consumption.models.line import ConsumptionLine, Orphan, OrphanReason
from metering.consumption.models.window import ConsumptionWindow, WindowLength

__all__ = [
    "TRANSITIONS",
    "ChargeState",
    "ConsumptionCharge",
    "ConsumptionLine",
    "ConsumptionWindow",
    "Orphan",
    "OrphanReason",
    "WindowLength",
]
