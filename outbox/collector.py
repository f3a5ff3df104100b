"""The garbage collector of a process that works batch by batch."""

import gc

ALLOCATIONS_PER_LOOK = 50_000
"""A batch of 500 allocates tens of thousands of containers and drops them all; looking more often finds nothing."""


def settle_in() -> None:
    """Call once when a worker process has loaded everything: what exists now is never looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(ALLOCATIONS_PER_LOOK, 20, 20)
