"""The one typed door between owners: `deliver` events, `ask` for a fact, `order` a command (house, wall 1; O21).

Whoever calls shows a `Pass`: its workload, the audience it wants and the scope, which is the digest of the whole
expected identity. The door compares all three with what the contract allows and what was really sent before anything
runs, so a pass for one event, receipt or operation opens nothing else. Envelopes cross as the exact stored bytes.

`InProcess` is the default transport. An HTTP transport stands beside it by implementing `Transport`; contracts,
consumers, reads and commands do not notice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

from django.conf import settings
from django.utils.module_loading import import_string

from config.owners import consumer_for, owner_named
from outbox.contracts.canonical import sha256_hex
from outbox.contracts.contract import Contract
from outbox.contracts.delivery import DeliveryRequest, Verdict
from outbox.contracts.question import Question, dispatcher_workload

__all__ = [
    "AccessRefused",
    "InProcess",
    "NotBound",
    "Pass",
    "Question",
    "Transport",
    "ask",
    "delivery_scope",
    "dispatcher_workload",
    "scope_of",
    "transport",
]

Q = TypeVar("Q", bound=Contract)
A = TypeVar("A", bound=Contract)


@dataclass(frozen=True, slots=True)
class Pass:
    """Who calls, for which audience, for exactly which identity."""

    workload: str
    audience: str
    scope: str


class AccessRefused(PermissionError):
    """The pass does not fit workload, audience or scope. Permanent: use the workload and identity of the contract."""


class NotBound(LookupError):
    """Nothing answers this name in this deployment. Transient: bind it in the settings or the owner table."""


def scope_of(expected: Contract) -> str:
    """The scope that a pass for `expected` must carry: the digest of the whole expected identity."""
    return sha256_hex(expected.canonical())


def delivery_scope(requests: Sequence[DeliveryRequest]) -> str:
    """The scope of a batch: every event, envelope digest, definition and member in it, in order.

    None of these values holds a space or a line feed, so the joined lines say exactly one batch.
    """
    lines = [
        f"{request.event_id} {request.envelope_sha256} {request.member.destination} {request.member.consumer_name} "
        f"{request.member.definition.digest}"
        for request in requests
    ]
    return sha256_hex("\n".join(lines).encode())


class Transport(Protocol):
    """What a transport must offer, in-process or over HTTP."""

    def deliver(self, requests: Sequence[DeliveryRequest], *, access: Pass) -> Sequence[Verdict]:
        """Hand one consumer's batch over; one verdict per request, in order.

        Raises `AccessRefused`, `NotBound`, or whatever the consumer raised: then nothing in the batch was committed.
        """

    def ask(self, question: Question[Q, A], *, expected: Q, access: Pass) -> A:
        """Answer a targeted read or carry out a command. Raises `AccessRefused`, `NotBound`, or the owner's error."""


Handler = Callable[[Sequence[DeliveryRequest]], Sequence[Verdict]]


class InProcess:
    """Calls the consumer or the owner in this process, through the same door that HTTP would have."""

    def deliver(self, requests: Sequence[DeliveryRequest], *, access: Pass) -> Sequence[Verdict]:
        destination, producer = requests[0].member.destination, requests[0].producer
        if any((request.member.destination, request.producer) != (destination, producer) for request in requests):
            raise ValueError("A batch goes from one producer to one destination.")
        bound = consumer_for(destination)
        if bound is None or bound[1].handler is None:
            raise NotBound(f"No consumer is bound for {destination}; name its handler in config/owners.py.")
        self._open(
            access,
            workloads=frozenset({dispatcher_workload(producer)}),
            audience=destination,
            scope=delivery_scope(requests),
        )
        foreign = {request.member.event_type for request in requests} - set(owner_named(producer).events)
        if foreign:
            raise AccessRefused(f"{producer} does not produce {', '.join(sorted(foreign))}; its owner delivers it.")
        handler: Handler = import_string(bound[1].handler)
        verdicts = handler(requests)
        if len(verdicts) != len(requests):
            raise RuntimeError(f"{bound[1].name} answered {len(verdicts)} verdicts for {len(requests)} deliveries.")
        return verdicts

    def ask(self, question: Question[Q, A], *, expected: Q, access: Pass) -> A:
        if not isinstance(expected, question.expected):
            raise TypeError(f"{question.name} expects {question.expected.__name__}.")
        self._open(access, workloads=question.workloads, audience=question.audience, scope=scope_of(expected))
        answer: Callable[..., A] = self._answer(question.name)
        return answer(expected, caller=access)

    def _answer(self, name: str) -> Callable[..., Any]:
        path = self._answers.get(name)
        if path is None:
            raise NotBound(f"Nothing answers {name!r}; bind it in OUTBOX_ANSWERS in the settings.")
        return import_string(path)  # type: ignore[no-any-return]  # import_string is untyped by nature

    @cached_property
    def _answers(self) -> dict[str, str]:
        return dict(settings.OUTBOX_ANSWERS)

    @staticmethod
    def _open(access: Pass, *, workloads: frozenset[str], audience: str, scope: str) -> None:
        if access.workload not in workloads:
            raise AccessRefused(f"Workload {access.workload!r} may not call this; allowed: {sorted(workloads)}.")
        if access.audience != audience:
            raise AccessRefused(f"The pass is for audience {access.audience!r}, not {audience!r}.")
        if access.scope != scope:
            raise AccessRefused("The pass has another scope than the identity that was sent.")


def transport() -> Transport:
    """The transport this deployment uses (`OUTBOX_TRANSPORT`)."""
    kind: Callable[[], Transport] = import_string(settings.OUTBOX_TRANSPORT)
    return kind()


def ask(question: Question[Q, A], *, workload: str, expected: Q) -> A:
    """Ask with a pass made for exactly this question and identity."""
    access = Pass(workload=workload, audience=question.audience, scope=scope_of(expected))
    return transport().ask(question, expected=expected, access=access)
