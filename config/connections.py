"""How many database sessions the configured processes can open, counted by owner and role."""

from collections import Counter
from dataclasses import dataclass

from config import environment
from config.databases import address_of
from config.owners import OWNERS, Owner, Role

Server = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Processes:
    """What runs at the same time, on all machines together."""

    web: int
    worker: int
    machines: int

    @classmethod
    def configured(cls) -> "Processes":
        """`WEB_PROCESSES` and `WORKER_PROCESSES` as the Procfile reads them, times `MACHINES`."""
        return cls(
            web=environment.integer("WEB_PROCESSES", 1, low=1, high=1000),
            worker=environment.integer("WORKER_PROCESSES", 2, low=1, high=1000),
            machines=environment.integer("MACHINES", 1, low=1, high=1000),
        )


def most(owner: Owner, processes: Processes) -> dict[Role, int]:
    """The largest number of sessions per role.

    A worker process holds one session as the owner (consumers, sweeps), and as the dispatcher one for the loop and one
    for the heartbeat. A web process reads for pages and, beside that, for a scrape or a health check. One command per
    role may run at the same time.
    """
    web, worker = processes.web * processes.machines, processes.worker * processes.machines
    needs = {Role.SCHEMA: 0, Role.OWNER: web + worker, Role.DISPATCH: 2 * worker, Role.READ: 2 * web, Role.SESSION: web}
    return {role: needs[role] + 1 for role in owner.roles}


def server_of(owner: Owner) -> Server:
    """Host and port of the owner's server."""
    address = address_of(owner)
    return address.host, address.port


def most_per_server(processes: Processes) -> dict[Server, int]:
    """The largest number of sessions that all owners of each server need together."""
    total: Counter[Server] = Counter()
    for owner in OWNERS:
        total[server_of(owner)] += sum(most(owner, processes).values())
    return dict(total)
