"""The retry policy."""

import pytest
from django.core.checks import run_checks

from outbox.contracts.delivery import RetryClass
from outbox.retry import MIN_DELAY_SECONDS, policy


@pytest.mark.spec("O30")
@pytest.mark.parametrize("retry_class", list(RetryClass))
def test_delays_grow_to_the_cap_of_their_class_and_never_vanish(retry_class: RetryClass) -> None:
    rule = policy(retry_class.value)
    for attempt in (1, 2, 3, 10, 1_000_000):
        longest = min(rule.cap, rule.base * rule.factor ** min(attempt - 1, 60))
        for _ in range(50):
            assert MIN_DELAY_SECONDS <= rule.delay(attempt) <= max(longest, MIN_DELAY_SECONDS)


@pytest.mark.spec("O30")
def test_waiting_for_a_predecessor_is_short_fixed_and_never_quarantines() -> None:
    rule = policy("waiting_predecessor")
    assert rule.delay(1) == rule.delay(1000) == rule.base
    assert rule.quarantine_after is None


@pytest.mark.spec("O30")
def test_nothing_quarantines_by_attempts_unless_an_operator_says_so() -> None:
    assert all(policy(retry_class.value).quarantine_after is None for retry_class in RetryClass)


@pytest.mark.spec("O19", "O30")
@pytest.mark.trap("D5")
@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("OUTBOX_RENEW_EVERY", 11.0, "outbox.E001"),
        ("OUTBOX_RETRY", {}, "outbox.E002"),
        (
            "OUTBOX_RETRY",
            {c.value: {"base": 5, "factor": 1, "cap": 1, "quarantine_after": None} for c in RetryClass},
            "outbox.E003",
        ),
        (
            "OUTBOX_RETRY",
            {c.value: {"base": 1, "factor": 1, "cap": 1, "quarantine_after": 3} for c in RetryClass},
            "outbox.E004",
        ),
    ],
)
def test_a_configuration_that_cannot_work_is_refused_at_start(
    settings: object, name: str, value: object, found: str
) -> None:
    setattr(settings, name, value)
    assert found in {message.id for message in run_checks()}
