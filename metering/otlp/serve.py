"""Run the receiver's processes: gunicorn forks them from one that has all loaded, so a killed one is back at once."""

import gc
import logging
import signal
from typing import Any

from django.conf import settings
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger
from uvicorn_worker import UvicornWorker

from config.processes import die_with
from metering.otlp.protocol import BoundedProtocol
from metering.otlp.receiver import Receiver

KEEP_ALIVE_SECONDS = 75
"""How long an idle connection of a collector stays open."""
GRACE_SECONDS = 20
"""How long a stopping process finishes what it took; the supervisor waits as long."""
HUNG_SECONDS = 60
"""An event loop that was silent for so long is dead."""


class PlainLogger(Logger):  # type: ignore[misc]  # the library is untyped
    """gunicorn's log goes where every other goes."""

    def setup(self, cfg: Any) -> None:
        self.error_log.propagate = True


class ReceiverWorker(UvicornWorker):  # type: ignore[misc]  # the library is untyped
    """A process that answers; its peers are the peers themselves, never what a header says."""

    CONFIG_KWARGS = {
        "loop": "uvloop",
        "http": BoundedProtocol,
        "lifespan": "on",
        "interface": "asgi3",
        "limit_concurrency": settings.OTLP_CONNECTIONS,
        "timeout_graceful_shutdown": GRACE_SECONDS,
        "proxy_headers": False,
        "server_header": False,
        "access_log": False,
    }

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        logging.getLogger("uvicorn.error").propagate = True


class Processes(BaseApplication):  # type: ignore[misc]  # the library is untyped
    """The parent, which answers nothing itself."""

    def load_config(self) -> None:
        chosen: dict[str, Any] = {
            "bind": f"{settings.OTLP_HOST}:{settings.OTLP_PORT}",
            "workers": settings.OTLP_PROCESSES,
            "worker_class": ReceiverWorker,
            "preload_app": True,
            "keepalive": KEEP_ALIVE_SECONDS,
            "timeout": HUNG_SECONDS,
            "graceful_timeout": GRACE_SECONDS,
            "control_socket_disable": True,
            "logger_class": PlainLogger,
            "when_ready": lambda _: gc.freeze(),
            "post_fork": lambda _, worker: _end_with(worker.ppid),
        }
        for name, value in chosen.items():
            self.cfg.set(name, value)

    def load(self) -> Receiver:
        return Receiver()


def _end_with(parent: int) -> None:
    """A killed parent leaves nobody behind who would keep the port."""
    bind = die_with(parent, signal.SIGTERM)
    if bind is not None:
        bind()
