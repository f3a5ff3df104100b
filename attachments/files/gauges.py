"""Changes of the stored tree that are open now, read from the journal at scrape."""

from collections.abc import Iterator

from django.db.backends.utils import CursorWrapper

from config.owners import Owner
from outbox.gauges import Sample
from outbox.metrics import Kind, Metric

CAP = 10_000
"""Open changes that one scrape looks at."""

GAUGES: tuple[Metric, ...] = (
    Metric("files_open_changes", Kind.GAUGE, (), "Changes of the stored tree that have not ended."),
    Metric("files_failing_changes", Kind.GAUGE, (), "Those of them that could not be ended when it was tried."),
    Metric("files_oldest_open_seconds", Kind.GAUGE, (), "For how long the oldest of them is open."),
)

OPEN = """
SELECT count(*), count(*) FILTER (WHERE failures > 0),
       coalesce(extract(epoch FROM now() - min(written_at)), 0)
  FROM (SELECT failures, written_at FROM staged_file_intents WHERE state = 'open' ORDER BY folder, sequence LIMIT %s) i
"""


def read(owner: Owner, cursor: CursorWrapper) -> Iterator[Sample]:
    """The samples of `GAUGES`."""
    cursor.execute(OPEN, [CAP])
    for metric, value in zip(GAUGES, cursor.fetchone(), strict=True):
        yield Sample(metric.name, (), max(0.0, float(value)))
