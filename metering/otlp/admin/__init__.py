"""Stored events, what was dropped, what contradicts, and who sends, to be read in the section of telemetry."""

from config.readonly_admin import SECTIONS
from metering.otlp.admin.conflicts import ConflictAdmin
from metering.otlp.admin.drops import DropAdmin
from metering.otlp.admin.events import LlmBillingEventAdmin, ResourceUtilizationEventAdmin
from metering.otlp.admin.senders import SenderAdmin
from metering.otlp.models import Conflict, Drop, LlmBillingEvent, ResourceUtilizationEvent, Tally

SECTIONS["telemetry"].register(Tally, SenderAdmin)
SECTIONS["telemetry"].register(LlmBillingEvent, LlmBillingEventAdmin)
SECTIONS["telemetry"].register(ResourceUtilizationEvent, ResourceUtilizationEventAdmin)
SECTIONS["telemetry"].register(Conflict, ConflictAdmin)
SECTIONS["telemetry"].register(Drop, DropAdmin)
