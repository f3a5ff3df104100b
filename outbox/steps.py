"""Named steps of a dispatcher and a consumer, for tests that stop or kill a real process exactly there.

In production `hook` is None and a step costs one comparison. A test sets it in the process it is about.
"""

from collections.abc import Callable

hook: Callable[[str], None] | None = None


def reach(step: str) -> None:
    """Say that `step` is reached."""
    if hook is not None:
        hook(step)
