"""Draining: after SIGTERM nothing new is claimed, what is in work is finished, the rest is given back (O19)."""

import multiprocessing

_draining = multiprocessing.get_context("fork").Event()
"""Made before workers fork, so that the parent's signal reaches every child."""


def begin() -> None:
    """From now on this process, and every process forked from it, drains."""
    _draining.set()


def begun() -> bool:
    """Whether draining has begun."""
    return _draining.is_set()


def forget() -> None:
    """Take draining back; only for a process that starts a new loop."""
    _draining.clear()
