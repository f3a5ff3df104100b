"""The strict, closed, frozen shape of everything that travels, and content addressing (O6, O20, O21).

A *content reference* is the four-tuple (ref, schema version, digest algorithm version, digest). In Python it is one
value; on the wire it is four fields named after the object: a field `run_admission_manifest: ContentReference` becomes
`runAdmissionManifestRef`, `…SchemaVersion`, `…DigestAlgorithmVersion`, `…Digest`. It is flattened when the class is
made, so models, JSON Schema and TypeScript agree and nobody writes four fields by hand.

An object has exactly one wire form: sorted camelCase keys, absent fields left out (never null), RFC 8785 bytes. An
object that was read from bytes or has written them remembers them, so that it is encoded once.

A *content-addressed* object names its own reference field and the fields its digest does not cover. Its reference is
added to its fields; whoever parses such an object has its digest proven:

    class RunAdmissionManifest(ContentAddressed, own="run_admission_manifest", version="1", excluded=("admitted_at",)):
        run_id: Identifier
        admitted_at: Timestamp
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn, Self, cast, get_args

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from outbox.contracts.canonical import (
    DIGEST_ALGORITHM,
    NotCanonicalSafe,
    decode,
    encode_json,
    encode_trusted,
    limited,
    sha256_hex,
)
from outbox.contracts.fields import (
    REFERENCE_PARTS,
    Code,
    ContentReference,
    Count,
    DecimalString,
    DigestAlgorithm,
    Identifier,
    Sha256,
    Text,
    Timestamp,
    Version,
    instant,
    timestamp,
)
from outbox.contracts.flatten import ContractType
from outbox.contracts.safe_types import unsafe_parts

__all__ = [
    "Code",
    "ContentAddressed",
    "ContentReference",
    "Contract",
    "ContractViolation",
    "Count",
    "DecimalString",
    "DigestAlgorithm",
    "Identifier",
    "Sha256",
    "Text",
    "Timestamp",
    "Version",
    "describe",
    "instant",
    "timestamp",
]


_SECOND_FORM = "$: an absent field is left out, never null, and constants are written."
"""pydantic takes null for a field that may be absent, and lets a constant be left out: second forms of one object."""
_put = object.__setattr__
"""Frozen models refuse assignment; what they remember about themselves is put past that."""


def _remembered(contract: BaseModel, name: str) -> Any:
    # Not `getattr`: on a slot that is still empty it would go on to pydantic's slow search for private attributes.
    try:
        return object.__getattribute__(contract, name)
    except AttributeError:
        return None


class ContractViolation(ValueError):
    """The bytes do not satisfy the contract. Permanent: the producer must publish a corrected object."""


def _implied_in(annotation: Any) -> bool:
    return getattr(annotation, "_may_be_implied", False) or any(_implied_in(part) for part in get_args(annotation))


class Contract(BaseModel, metaclass=ContractType):
    """One closed wire object: camelCase, unknown fields refused, no coercion, absent instead of null."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        # NaN must reach the check that refuses it; the default would turn it into null on the way.
        ser_json_inf_nan="constants",
    )
    __slots__ = ("_bytes", "_proven")

    reference_fields: ClassVar[tuple[str, ...]] = ()
    contract_version: ClassVar[str] = "1"
    _may_be_implied: ClassVar[bool] = False
    _safe: ClassVar[bool | None] = None

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls._safe = None
        cls._may_be_implied = any(
            (field.get_default() is not None and not field.is_required()) or _implied_in(field.annotation)
            for field in cls.model_fields.values()
        )

    def __init__(self, **values: Any) -> None:
        for field in self.reference_fields:
            reference = values.pop(field, None)
            if reference is not None:
                values |= {f"{field}_{part}": getattr(reference, part) for part in REFERENCE_PARTS}
        super().__init__(**values)

    # Tells pydantic that validation may build the object without calling this constructor, which only flattens.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # pydantic's own marker on a function

    @classmethod
    def of_proven(cls, **values: Any) -> Self:
        """An object of all its wire fields, by Python name, whose values were proven before; nothing is checked."""
        made = cls.__new__(cls)
        _put(made, "__dict__", values)
        _put(made, "__pydantic_fields_set__", set(values))
        _put(made, "__pydantic_extra__", None)
        _put(made, "__pydantic_private__", None)
        return made

    def wire(self) -> dict[str, Any]:
        """The JSON object, with absent optional fields left out: dicts, lists and scalars only."""
        return self.model_dump(mode="json", exclude_none=True)

    def canonical(self) -> bytes:
        """RFC 8785 bytes. Raises `NotCanonicalSafe`."""
        known: bytes | None = _remembered(self, "_bytes")
        if known is None:
            known = self._encode(self.wire())
            _put(self, "_bytes", known)
        return known

    @classmethod
    def _encode(cls, wire: dict[str, Any]) -> bytes:
        return limited(encode_json(wire)) if cls._holds_safe_values() else encode_trusted(wire)

    @classmethod
    def _holds_safe_values(cls) -> bool:
        if cls._safe is None:
            cls._safe = not unsafe_parts(cls.model_json_schema())
        return cls._safe

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The object in canonical bytes; refuses any other form of it. Raises `ContractViolation`."""
        return cls._parse(data)[0]

    @classmethod
    def _parse(cls, data: bytes) -> tuple[Self, dict[str, Any]]:
        try:
            if cls._holds_safe_values():
                parsed = cls._validate(limited(data))
                # Reading and writing what was just proven to be plain JSON costs a fraction of asking the object.
                wire = orjson.loads(data)
                if encode_json(wire) != data or (
                    (cls._may_be_implied or b"null" in data) and encode_json(parsed.wire()) != data
                ):
                    _refuse_form(data)
            else:
                wire = decode(data)
                parsed = cls._read(data)
        except NotCanonicalSafe as error:
            raise ContractViolation(f"{cls.__name__}: {error}") from error
        _put(parsed, "_bytes", data)
        return parsed, wire

    @classmethod
    def from_wire(cls, value: Mapping[str, Any]) -> Self:
        """The object in a decoded JSON value. Raises `ContractViolation`."""
        try:
            data = encode_json(value)
        except NotCanonicalSafe as error:
            raise ContractViolation(f"{cls.__name__}: {error}") from error
        return cls._read(data)

    @classmethod
    def _read(cls, data: bytes) -> Self:
        read = cls._validate(data)
        if (cls._may_be_implied or b"null" in data) and encode_json(read.wire()) != data:
            raise ContractViolation(f"{cls.__name__}: {_SECOND_FORM}")
        return read

    @classmethod
    def _validate(cls, data: bytes) -> Self:
        try:
            return cast(Self, cls.__pydantic_validator__.validate_json(data, by_alias=True, by_name=False))
        except ValidationError as error:
            raise ContractViolation(f"{cls.__name__}: {describe(error)}") from error


def _refuse_form(data: bytes) -> NoReturn:
    decode(data)
    raise NotCanonicalSafe(_SECOND_FORM)


def describe(error: Exception) -> str:
    """One line that names each wrong field and never repeats its value (values may be sensitive)."""
    if not isinstance(error, ValidationError):
        return str(error)
    return "; ".join(
        f"{'.'.join(str(part) for part in item['loc']) or '$'}: {item['msg']}" for item in error.errors()[:8]
    )


class ContentAddressed(Contract):
    """A contract with its own reference whose digest covers all fields but `ref`, `digest` and the excluded ones."""

    own_field: ClassVar[str] = ""
    excluded_fields: ClassVar[frozenset[str]] = frozenset()
    _digest_name: ClassVar[str] = ""

    def __init_subclass__(
        cls, *, own: str = "", version: str = "", excluded: tuple[str, ...] = (), **kwargs: Any
    ) -> None:
        super().__init_subclass__(**kwargs)

    @classmethod
    def __pydantic_init_subclass__(
        cls, *, own: str = "", version: str = "", excluded: tuple[str, ...] = (), **kwargs: Any
    ) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if own:
            cls.own_field, cls.contract_version, cls._digest_name = own, version, to_camel(f"{own}_digest")
            hidden = {f"{own}_ref", f"{own}_digest", *excluded}
            if unknown := hidden - set(cls.model_fields):
                raise TypeError(f"{cls.__name__} excludes {sorted(unknown)} from its digest, which it does not have.")
            cls.excluded_fields = frozenset(to_camel(name) for name in hidden)

    @classmethod
    def issue(cls, *, ref: str, **fields: Any) -> Self:
        """A new object with its digest computed. Raises `ContractViolation` if the fields do not fit."""
        own, digest_field = cls.own_field, f"{cls.own_field}_digest"
        fields |= {
            f"{own}_ref": ref,
            f"{own}_schema_version": cls.contract_version,
            f"{own}_digest_algorithm_version": DIGEST_ALGORITHM,
            digest_field: "0" * 64,
        }
        try:
            issued = cls(**fields)
            wire = issued.wire()
            digest = cls._digest(wire)
            wire[cls._digest_name] = digest
            data = cls._encode(wire)
        except ValidationError as error:
            raise ContractViolation(f"{cls.__name__}: {describe(error)}") from error
        except NotCanonicalSafe as error:
            raise ContractViolation(f"{cls.__name__}: {error}") from error
        # Nobody else has seen the object yet; it is frozen from here on.
        issued.__dict__[digest_field] = digest
        _put(issued, "_bytes", data)
        _put(issued, "_proven", True)
        return issued

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The object in canonical bytes, its digest and version proven. Raises `ContractViolation`."""
        parsed, value = cls._parse(data)
        return parsed._prove(cls._digest(value))

    @classmethod
    def _digest(cls, wire: Mapping[str, Any]) -> str:
        candidate = dict(wire)
        for name in cls.excluded_fields:
            candidate.pop(name, None)
        return sha256_hex(encode_json(candidate))

    def candidate(self) -> dict[str, Any]:
        """What the digest covers."""
        return {key: value for key, value in self.wire().items() if key not in self.excluded_fields}

    def recompute_digest(self) -> str:
        """The digest the stored one must equal. Raises `NotCanonicalSafe`."""
        return sha256_hex(self._encode(self.candidate()))

    @property
    def reference(self) -> ContentReference:
        """The object's own four-tuple."""
        return cast(ContentReference, getattr(self, self.own_field))

    def ensure_digest(self) -> Self:
        """The object itself, proven. Raises `ContractViolation` if digest or schema version is not its own."""
        if _remembered(self, "_proven"):
            return self
        return self._prove(self.recompute_digest())

    def _prove(self, digest: str) -> Self:
        values, own = self.__dict__, self.own_field
        if values[f"{own}_schema_version"] != self.contract_version:
            raise ContractViolation(
                f"{type(self).__name__}: unknown schema version {values[f'{own}_schema_version']!r}; "
                f"this release reads {self.contract_version!r}."
            )
        if values[f"{own}_digest"] != digest:
            raise ContractViolation(f"{type(self).__name__}: the digest does not match the content.")
        _put(self, "_proven", True)
        return self
