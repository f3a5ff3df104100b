"""Through which aliases the checks look."""

from config.owners import owner_named, producers

PRODUCERS = tuple((owner.name, owner.read_alias) for owner in producers())
"""Name and read alias of every database that holds an outbox."""
CORE = ("core", owner_named("core").read_alias)
BILLING = ("billing", owner_named("billing").read_alias)
METERING = ("metering", owner_named("metering").read_alias)
TELEMETRY = ("telemetry", owner_named("telemetry").read_alias)
ATTACHMENTS = ("attachments", owner_named("attachments").read_alias)
