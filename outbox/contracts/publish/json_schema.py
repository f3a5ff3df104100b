"""The JSON Schema (draft 2020-12) of a contract: closed, flattened, and without null where a field may be absent."""

import json
from typing import Any

from pydantic.alias_generators import to_camel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from outbox.contracts.contract import ContentAddressed, Contract
from outbox.contracts.envelope import Envelope
from outbox.contracts.publish.catalogue import Published, Unpublishable
from outbox.contracts.safe_types import unsafe_parts

OPEN_PARTS: dict[type[Contract], list[str]] = {Envelope: ["$.payload"]}
"""What may hold any canonical-safe JSON, because another contract describes it: an envelope's payload."""


def schema_of(published: Published) -> dict[str, Any]:
    """The schema as a JSON value. Raises `Unpublishable` for a contract that could hold what has no canonical form."""
    contract = published.contract
    schema = contract.model_json_schema(schema_generator=_Generator)
    unsafe = [part for part in unsafe_parts(schema) if part not in OPEN_PARTS.get(contract, [])]
    if unsafe:
        raise Unpublishable(
            f"{published.name}: {', '.join(unsafe)} could hold a value that has no canonical form. Use the types of "
            f"outbox.contracts.fields: bounded integers, text with a pattern, closed objects."
        )
    if issubclass(contract, ContentAddressed):
        own = contract.own_field
        schema["properties"][to_camel(f"{own}_schema_version")] = {"type": "string", "const": published.version}
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "$id": f"urn:backbone:contract:{published.room}:{published.name}:{published.version}",
        **schema,
    }


def schema_bytes(published: Published) -> bytes:
    """The published file."""
    return (json.dumps(schema_of(published), indent=2, ensure_ascii=False) + "\n").encode()


class _Generator(GenerateJsonSchema):
    """pydantic's generator, without what is Python's alone: nulls and defaults of absent fields, a title per field."""

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        # A constant has a default in Python and is always written; only a default of None means absent.
        inner = field.get("schema", {})
        return inner.get("type") != "default" or inner.get("default") is not None
