"""Child, in the environment of the peers: pgmq, installed as plain SQL; read a batch, delete it, keep nothing."""

import os
import sys
import time

import psycopg

from tests.bench import children

BATCH = 500
QUEUE = "bench"


def main() -> None:
    dsn, what = os.environ["BENCH_DSN"], sys.argv[1]
    if what == "load":
        load(dsn, int(sys.argv[2]))
        return
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=0) as connection:
        children.wait_for_start()
        started, done = time.perf_counter(), 0
        while rows := connection.execute(
            "SELECT msg_id, message FROM pgmq.read(%s, 30, %s)", [QUEUE, BATCH]
        ).fetchall():
            ids = [row[0] for row in rows]
            connection.execute("SELECT count(*) FROM pgmq.delete(%s, %s::bigint[])", [QUEUE, ids])
            done += len(ids)
    children.answer(done=done, seconds=time.perf_counter() - started)


def load(dsn: str, events: int) -> None:
    from pgmq import get_embedded_install_sql  # type: ignore[import-not-found]  # it lives in the peers' environment

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(get_embedded_install_sql())
        connection.execute("SELECT pgmq.create(%s)", [QUEUE])
        connection.execute(
            "SELECT count(*) FROM pgmq.send_batch(%s, (SELECT array_agg(jsonb_build_object('p', repeat('x', 800)))"
            " FROM generate_series(1, %s)))",
            [QUEUE, events],
        )
        connection.execute("VACUUM ANALYZE")
    children.wait_for_start()
    children.answer(done=events)


if __name__ == "__main__":
    main()
