"""How much of the full measurement a run does."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """A share of the full backlogs, and the number of interleaved rounds of which medians are taken."""

    share: float = 1.0
    rounds: int = 3

    def of(self, full: int, *, least: int = 100) -> int:
        """The share of `full`, even, and at least `least`."""
        return max(least, int(full * self.share) // 2 * 2)


FULL = Size()
QUICK = Size(share=0.02, rounds=1)
"""Proves that it runs."""
