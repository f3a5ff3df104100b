"""A receiver of its own for tests over HTTP, and a clean start for tests without it."""

from collections.abc import Iterator

import pytest

from tests.otlp.storing import forget_days


@pytest.fixture
def telemetry(database: None) -> Iterator[None]:
    """The real databases, and a process that knows nothing of them yet."""
    forget_days()
    yield
    forget_days()
