"""Connectors, their secrets, what was done to them, and the events that they delivered.

No table holds the plaintext of a secret. Nothing is deleted, and but for the end of a secret nothing ever changes.
"""

from attachments.connectors.models.act import ActKind, ConnectorAct
from attachments.connectors.models.connector import Connector
from attachments.connectors.models.event import ConnectorConflict, ConnectorEvent
from attachments.connectors.models.secret import TRANSITIONS, ConnectorSecret, SecretState

__all__ = [
    "TRANSITIONS",
    "ActKind",
    "Connector",
    "ConnectorAct",
    "ConnectorConflict",
    "ConnectorEvent",
    "ConnectorSecret",
    "SecretState",
]
