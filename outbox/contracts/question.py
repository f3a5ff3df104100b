"""A targeted read or a command that an owner publishes in its `contracts`, and who may put it (O21)."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from outbox.contracts.contract import Contract

Q = TypeVar("Q", bound=Contract)
A = TypeVar("A", bound=Contract)


@dataclass(frozen=True, slots=True)
class Question(Generic[Q, A]):
    """`expected` is the whole identity the caller already holds; there is no list, no latest, no free query."""

    name: str
    audience: str
    workloads: frozenset[str]
    expected: type[Q]
    answer: type[A]


def dispatcher_workload(owner: str) -> str:
    """The workload name of an owner's dispatcher."""
    return f"{owner}.dispatcher"
