"""Which contracts are published, by which room, and with which examples.

Found, not listed, so that none is forgotten: in every room's `contracts.py` (or `contracts/` package) each
content-addressed object, each event payload, what each question expects and answers, and what the module's own
`PUBLISHED` tuple adds. Examples stand beside them, in `contract_examples.py` or `contracts/examples.py`, as
`EXAMPLES = {"RunCreated": RunCreated(…), "ActiveConsumerAck.metering_input_processor": …}`: the contract's name and,
where it has several branches, the branch.
"""

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from outbox.contracts.contract import ContentAddressed, Contract
from outbox.contracts.envelope import registered_payloads
from outbox.contracts.question import Question

ROOMS = ("outbox", "upstream", "metering", "billing", "operations", "attachments")


class Unpublishable(ValueError):
    """A contract cannot be published; the message says what to add or to change."""


@dataclass(frozen=True, slots=True)
class Published:
    """One contract as the world sees it."""

    contract: type[Contract]
    room: str
    """Dotted package whose contract it is: `upstream.admission`."""
    version: str
    event_type: str | None
    examples: Mapping[str, Contract]

    @property
    def name(self) -> str:
        return self.contract.__name__

    @property
    def excluded(self) -> frozenset[str]:
        """Wire names that the object's own digest does not cover; empty for what has no digest of its own."""
        return getattr(self.contract, "excluded_fields", frozenset())


def contract_modules(root: Path) -> tuple[str, ...]:
    """Dotted names of every contract and example module below the rooms of `root`, sorted."""
    return tuple(sorted(".".join(path.relative_to(root).with_suffix("").parts) for path in _files(root)))


def _files(root: Path) -> Iterator[Path]:
    for room in ROOMS:
        for path in (root / room).rglob("*.py"):
            folders = path.relative_to(root).parts[:-1]
            if {"publish", "management"} & set(folders) or path.name == "__init__.py":
                continue
            if path.name in {"contracts.py", "contract_examples.py"} or "contracts" in folders:
                yield path


def catalogue(root: Path) -> tuple[Published, ...]:
    """Everything that is published, sorted by room and name. Raises `Unpublishable`."""
    modules = [importlib.import_module(name) for name in contract_modules(root)]
    examples: dict[str, Contract] = {}
    for module in modules:
        for name, example in getattr(module, "EXAMPLES", {}).items():
            if name in examples or name.partition(".")[0] != type(example).__name__:
                raise Unpublishable(f"{module.__name__}: name the example {name!r} after its contract, and only once.")
            examples[name] = example
    payloads = {contract: pair for pair, contract in registered_payloads().items()}
    found = {contract for module in modules for contract in _contracts(module)} | set(payloads)
    published = [
        _published(contract, payloads.get(contract), examples) for contract in found if _is_ours(contract, modules)
    ]
    named = {item.name: item for item in published}
    if len(named) != len(published):
        raise Unpublishable("Two published contracts have the same name; rename one of them.")
    if strangers := {name for name in examples if name.partition(".")[0] not in named}:
        raise Unpublishable(f"Examples of what is not published: {sorted(strangers)}.")
    return tuple(sorted(published, key=lambda item: (item.room, item.name)))


def _contracts(module: ModuleType) -> Iterator[type[Contract]]:
    yield from getattr(module, "PUBLISHED", ())
    for value in vars(module).values():
        if isinstance(value, Question):
            yield value.expected
            yield value.answer
        elif isinstance(value, type) and issubclass(value, ContentAddressed) and value.own_field:
            yield value


def _is_ours(contract: type[Contract], modules: list[ModuleType]) -> bool:
    return contract.__module__ in {module.__name__ for module in modules}


def _published(contract: type[Contract], pair: tuple[str, str] | None, examples: Mapping[str, Contract]) -> Published:
    own = {name: example for name, example in examples.items() if type(example) is contract}
    if not own:
        raise Unpublishable(
            f"{contract.__module__}.{contract.__name__} has no example. Add one to EXAMPLES in contract_examples.py "
            f"(or contracts/examples.py) beside it."
        )
    parts: list[Any] = contract.__module__.split(".")
    room = ".".join(parts[: parts.index("contracts")])
    return Published(
        contract=contract,
        room=room,
        version=pair[1] if pair else contract.contract_version,
        event_type=pair[0] if pair else None,
        examples=own,
    )
