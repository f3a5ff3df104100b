"""Settings that would lose or double events are refused."""

from typing import Any

import pytest

from config import environment
from metering.otlp.checks import SHORTEST_DAYS, retention_outlives_resends


@pytest.mark.trap("D25")
@pytest.mark.parametrize(
    ("days", "is_refused"), [(0, False), (1, True), (SHORTEST_DAYS - 1, True), (SHORTEST_DAYS, False)]
)
def test_a_retention_shorter_than_a_late_resend_is_refused(settings: Any, days: int, is_refused: bool) -> None:
    settings.OTLP_RETENTION_DAYS = days
    assert [found.id for found in retention_outlives_resends(None)] == (["otlp.E001"] if is_refused else [])


def test_a_word_is_one_of_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_WORD", " two ")
    assert environment.word("A_WORD", "one", words=("one", "two")) == "two"
    monkeypatch.delenv("A_WORD")
    assert environment.word("A_WORD", "one", words=("one", "two")) == "one"
    monkeypatch.setenv("A_WORD", "three")
    with pytest.raises(Exception, match=r"A_WORD='three' is not known\. Write one or two"):
        environment.word("A_WORD", "one", words=("one", "two"))
