"""How often a cluster may send: a sustained rate and a burst, shared by all processes through Redis or Valkey (T9).

GCRA is a token bucket of `burst` tokens that fills at `rate` a second, kept as one time by the store's own clock. A
request costs one token whatever it holds. When the store does not answer, each process measures for itself, with the
same numbers: a few more requests pass, none is lost.
"""

import random
import threading
import time
from functools import cache

import structlog
from django.conf import settings
from redis.exceptions import RedisError
from throttled.exceptions import StoreUnavailableError
from throttled.rate_limiter import BaseRateLimiter, RateLimiterRegistry, per_sec
from throttled.store import BaseStore, MemoryStore, RedisStore

from metering.otlp import metrics

PATIENCE_SECONDS = 0.25
"""How long one request waits for the store."""
GIVE_UP_SECONDS = 5.0
"""How long the store is left alone after it did not answer."""
KEY_PREFIX = "backbone:otlp"
MAX_KEYS = 10_000
"""Clusters that one process measures for itself."""
RETRY_AFTER = (1, 5)
"""Seconds after which a client should come again, both ends included; drawn anew for each, so that they spread out."""

log = structlog.get_logger("otlp.limiter")


class Limiter:
    """Measures requests; may be asked by several threads."""

    def __init__(self, *, url: str) -> None:
        options = {"socket_timeout": PATIENCE_SECONDS, "socket_connect_timeout": PATIENCE_SECONDS, "retry": None}
        self._shared: BaseStore = RedisStore(server=url, options={"CONNECTION_POOL_KWARGS": options})
        self._own: BaseStore = MemoryStore(options={"MAX_SIZE": MAX_KEYS})
        self._made: dict[tuple[bool, int, int], BaseRateLimiter] = {}
        self._lock = threading.Lock()
        self._lost_until = 0.0

    def admits(self, cluster_id: int, *, per_second: int, burst: int) -> bool:
        """Take one token of the cluster's bucket; False if there is none."""
        if time.monotonic() >= self._lost_until:
            try:
                return self._take(cluster_id, per_second, burst, shared=True)
            except (StoreUnavailableError, RedisError, OSError) as error:
                self._lost_until = time.monotonic() + GIVE_UP_SECONDS
                log.error("otlp_limiter_lost", error_class=type(error).__name__)
        metrics.limiter_lost()
        return self._take(cluster_id, per_second, burst, shared=False)

    def _take(self, cluster_id: int, per_second: int, burst: int, *, shared: bool) -> bool:
        return not self._limiter(per_second, burst, shared=shared).limit(str(cluster_id)).limited

    def _limiter(self, per_second: int, burst: int, *, shared: bool) -> BaseRateLimiter:
        key = (shared, per_second, burst)
        with self._lock:
            if key not in self._made:
                kind = RateLimiterRegistry.get("gcra")
                store = self._shared if shared else self._own
                self._made[key] = kind(per_sec(per_second, burst), store, key_prefix=KEY_PREFIX)
            return self._made[key]


@cache
def limiter() -> Limiter:
    """The limiter of this process."""
    return Limiter(url=settings.REDIS_URL)


def retry_after() -> str:
    """The value of a `Retry-After` header."""
    return str(random.randint(*RETRY_AFTER))  # noqa: S311  # spreading clients out is no secret
