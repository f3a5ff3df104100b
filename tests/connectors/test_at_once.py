"""However many events come at once, a web process holds so many sessions and no more; the others wait their turn."""

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
def test_a_web_process_holds_no_more_sessions_than_are_counted(make_provider: MakeProvider) -> None:
    provider, owners = make_provider(limit=200), [owner_named(name) for name in ("attachments", "billing")]
    for owner in owners:
        connections[owner.alias].close()
    seen: dict[str, list[int]] = {owner.name: [] for owner in owners}
    with ThreadPoolExecutor(60) as pool:
        sending = [pool.submit(provider.send, Event()) for _ in range(60)]
        while not all(future.done() for future in sending):
            for owner in owners:
                with connections[owner.read_alias].cursor() as cursor:
                    cursor.execute(SESSIONS, [owner.role_name(Role.OWNER)])
                    seen[owner.name].append(cursor.fetchone()[0])
        assert {future.result().status for future in sending} == {200}
    assert usage() == 60
    for owner in owners:
        assert 0 < max(seen[owner.name]) <= settings.API_AT_ONCE * WORKERS
        counted = most(owner, Processes(web=WORKERS, worker=0, machines=1, calls=settings.API_AT_ONCE))
        assert counted[Role.OWNER] >= max(seen[owner.name])
