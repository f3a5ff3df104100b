"""A logged-in operator, and stored telemetry."""

from tests.admin.conftest import client, looker, make_operator, quick_hashes, static_files
from tests.otlp.conftest import telemetry

__all__ = ["client", "looker", "make_operator", "quick_hashes", "static_files", "telemetry"]
