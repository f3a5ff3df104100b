"""The ceiling of the store: rows of the same shape copied into a bare copy of the table, nothing checked or decoded."""

import io
import time

from tests.bench import ground
from tests.bench.telemetry.served import DATABASE

ROWS = """
SELECT * FROM llm_billing_events ORDER BY occurred_at LIMIT 200000
"""


def copied_per_second() -> float:
    """Rows per second of one binary COPY of stored events into an empty, logged table with the same primary key."""
    with ground.administrator(DATABASE) as connection:
        connection.execute(f"CREATE TABLE bench_rows AS {ROWS}")
        connection.execute("CREATE TABLE bench_copied (LIKE bench_rows, PRIMARY KEY (event_id, occurred_at))")
        data = io.BytesIO()
        with connection.cursor() as cursor:
            with cursor.copy("COPY bench_rows TO STDOUT (FORMAT BINARY)") as out:
                for block in out:
                    data.write(block)
            started = time.perf_counter()
            with cursor.copy("COPY bench_copied FROM STDIN (FORMAT BINARY)") as into:
                into.write(data.getvalue())
            seconds = time.perf_counter() - started
            rows = cursor.rowcount
        connection.execute("DROP TABLE bench_rows, bench_copied")
    return rows / seconds
