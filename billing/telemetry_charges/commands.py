"""What metering may order of billing through the transport."""

from billing.telemetry_charges.post_charges import post_telemetry_charges
from metering.consumption.contracts import ChargeAnswers, TelemetryCharges
from outbox.transport import Pass


def answer_post_telemetry_charges(
    expected: TelemetryCharges,
    *,
    caller: Pass,  # the door checked it
) -> ChargeAnswers:
    """`postTelemetryCharges`"""
    return ChargeAnswers(answers=tuple(post_telemetry_charges(expected.charges)))
