"""Clusters and tokens as the commands and the API make them."""

from datetime import UTC, datetime

import pytest

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def now() -> datetime:
    """The moment at which a test stands."""
    return NOW
