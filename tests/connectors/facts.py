"""What the databases hold of connectors."""

from tests.commercial.make import rows

READ = "attachments.read"


def events() -> int:
    """Events stored."""
    return int(rows("SELECT count(*) FROM financial_connector_events", alias=READ)[0][0])


def bodies() -> set[bytes]:
    """The payloads of the events."""
    return {bytes(body) for (body,) in rows("SELECT body FROM financial_connector_events", alias=READ)}


def conflicts() -> int:
    """Conflicts recorded."""
    return int(rows("SELECT count(*) FROM financial_connector_conflicts", alias=READ)[0][0])
