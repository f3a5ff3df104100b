"""However many events come at once, a web process holds so many sessions and no more; the others wait their turn."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import settings
from django.db import connections

from config.connections import Processes, most
from config.owners import Role, owner_named
from tests.commercial.make import usage
from tests.connectors.conftest import WORKERS, MakeProvider
from tests.connectors.provider import Event

SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = %s"


@pytest.mark.spec("C4")
@pytest.mark.parametrize("name", ["attachments", "billing"])
def test_a_web_process_holds_no_more_sessions_than_are_counted(make_provider: MakeProvider, name: str) -> None:
    provider, owner = make_provider(limit=200), owner_named(name)
    connections[owner.alias].close()
    seen: list[int] = []
    with ThreadPoolExecutor(60) as pool:
        sending = [pool.submit(provider.send, Event()) for _ in range(60)]
        with connections[owner.read_alias].cursor() as cursor:
            deadline = time.monotonic() + 60
            while not all(future.done() for future in sending) and time.monotonic() < deadline:
                cursor.execute(SESSIONS, [owner.role_name(Role.OWNER)])
                seen.append(cursor.fetchone()[0])
        assert {future.result().status for future in sending} == {200}
    assert usage() == 60
    assert 0 < max(seen) <= settings.API_AT_ONCE * WORKERS
    counted = most(owner, Processes(web=WORKERS, worker=0, machines=1, calls=settings.API_AT_ONCE))
    assert counted[Role.OWNER] >= max(seen)
