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
    receiver: int = 0
    receiver_threads: int = 0
    calls: int = 1
    """Calls of the API that one web process works on at once."""

    @classmethod
    def configured(cls) -> "Processes":
        """The processes of the Procfile, times `MACHINES`."""
        return cls(
            calls=environment.integer("API_AT_ONCE", 8, low=1, high=100),
            receiver=environment.integer("OTLP_PROCESSES", 2, low=1, high=256),
            receiver_threads=environment.integer("OTLP_THREADS", 2, low=1, high=32),
            web=environment.integer("WEB_PROCESSES", 1, low=1, high=1000),
            worker=environment.integer("WORKER_PROCESSES", 2, low=1, high=1000),
            machines=environment.integer("MACHINES", 1, low=1, high=1000),
        )


def most(owner: Owner, processes: Processes) -> dict[Role, int]:
    """The largest number of sessions per role.

    A worker process holds one session as the owner (consumers, sweeps), as the dispatcher one for the loop and one for
    the heartbeat, and one that asks metering for managed keys. Who works as an owner with a journal has one more, for
    that. A web process reads for pages and, beside that, for a scrape or a health check; several of its calls to the
    API work at once in attachments and billing. A process of the telemetry receiver stores in several threads, asks
    metering for tokens in two more, and looks at both for a health check. One command per role may run at the same
    time.
    """
    web, worker = processes.web * processes.machines, processes.worker * processes.machines
    calls = processes.calls if owner.name in {"attachments", "billing"} else 1
    needs = {
        Role.SCHEMA: 0,
        Role.OWNER: web * calls + worker,
        Role.DISPATCH: 2 * worker,
        Role.READ: 2 * web,
        Role.SESSION: web,
    }
    needs[Role.JOURNAL] = needs[Role.OWNER]
    receiver = processes.receiver * processes.machines
    if owner.name == "telemetry":
        needs[Role.OWNER] += receiver * processes.receiver_threads
        needs[Role.READ] += receiver
    elif owner.name == "metering":
        needs[Role.READ] += 3 * receiver + worker
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
