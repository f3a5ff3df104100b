"""The one wall that import-linter has no contract type for: of another owner, only its contracts are imported."""

from typing import Any, cast

import grimp
from importlinter import Contract, ContractCheck, fields, output


class OnlyContracts(Contract):
    """`rooms`: packages that keep to themselves. `importable`: modules beside `contracts` that others may import.

    A module of one room may import, of another room, `contracts` (module or package) and `contract_examples` only.
    """

    type_name = "only_contracts"

    rooms = fields.ListField(subfield=fields.StringField())
    importable = fields.ListField(subfield=fields.StringField(), required=False)

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        broken = []
        for importer in sorted(graph.modules):
            home = self._room(importer)
            for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                room = self._room(imported)
                if home and room and room != home and not self._is_open(imported):
                    broken.append(f"{importer} imports {imported}")
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for line in cast(list[str], check.metadata["broken"]):
            output.print_error(f"- {line}: ask its owner through outbox.transport, or import its contracts.")

    def _room(self, module: str) -> str | None:
        rooms: list[str] = cast(Any, self.rooms)
        return next((room for room in rooms if module == room or module.startswith(f"{room}.")), None)

    def _is_open(self, module: str) -> bool:
        importable: list[str] = cast(Any, self.importable) or []
        parts = module.split(".")
        return "contracts" in parts or "contract_examples" in parts or module in importable
