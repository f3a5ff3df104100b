"""A pytest plugin that is loaded before Django's settings: it starts the embedded servers and names the databases.

The main process owns the servers (`$STATE_DIR/test`); parallel workers join them, and each has databases and a Redis
database of its own. With `DATABASE_URL_*` set, the tests run on those real servers instead.
"""

import os

from config.embedded import Embedded, Services, state_dir

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")


def _start() -> Embedded | None:
    if os.environ.get("DATABASE_URL_CORE"):
        return None
    if WORKER == "main":
        os.environ["STATE_DIR"] = str(state_dir() / "test")
    embedded = Embedded(state=state_dir())
    _use(embedded.start())
    return embedded


def _use(services: Services) -> None:
    number = 1 if WORKER == "main" else 2 + int(WORKER.removeprefix("gw"))
    os.environ["DATABASE_NAME_PREFIX"] = f"test_{WORKER}_"
    os.environ["REDIS_URL"] = f"{services.redis_url.rpartition('/')[0]}/{number}"


EMBEDDED = _start()


def pytest_unconfigure() -> None:
    """Stop what this process owns; a joined server is left to its owner."""
    if EMBEDDED is not None:
        EMBEDDED.stop()
