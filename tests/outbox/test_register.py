"""The registry of delivery sets."""

import pytest

from outbox.contracts.first_release import first_release
from outbox.register import active_definition


@pytest.mark.spec("O6", "O7")
def test_the_first_release_is_registered_and_active_in_every_producer_database(database: None) -> None:
    from config.owners import producers

    for owner in producers():
        assert active_definition(using=owner.read_alias) == first_release()
