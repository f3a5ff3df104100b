"""The strict, closed, frozen shape of everything that travels, and content addressing (O6, O20, O21).

A *content reference* is the four-tuple (ref, schema version, digest algorithm version, digest). In Python it is one
value; on the wire it is four fields named after the object: a field `run_admission_manifest: ContentReference` becomes
`runAdmissionManifestRef`, `…SchemaVersion`, `…DigestAlgorithmVersion`, `…Digest`. The flattening happens here, when
the class is made, so models, JSON Schema and TypeScript agree and nobody writes four fields by hand.

A *content-addressed* object names its own reference field and the fields its digest does not cover:

    class RunAdmissionManifest(ContentAddressed, own="run_admission_manifest", version="1", excluded=("admitted_at",)):
        run_id: Identifier
        admitted_at: Timestamp
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal, Self, cast, dataclass_transform

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic._internal._model_construction import ModelMetaclass
from pydantic.alias_generators import to_camel

from outbox.contracts.canonical import DIGEST_ALGORITHM, NotCanonicalSafe, decode, encode_trusted, sha256_hex

Identifier = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]
"""An opaque id: 1 to 200 printable ASCII characters without spaces."""
Version = Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=r"^[0-9A-Za-z][0-9A-Za-z._-]*$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
DigestAlgorithm = Literal["jcs-sha256-v1"]
Timestamp = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{6}Z$"),
]
"""RFC 3339, UTC, exactly six fractional digits and `Z`."""
DecimalString = Annotated[str, StringConstraints(pattern=r"^(0|-?[1-9][0-9]{0,37})$")]
"""An integer too large for JSON numbers (money in pico-units), in plain decimal digits."""
Code = Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=r"^[a-z0-9_.-]+$")]
"""A normalized, low-cardinality code."""


class ContractViolation(ValueError):
    """The bytes do not satisfy the contract. Permanent: the producer must publish a corrected object."""


def timestamp(instant: datetime) -> str:
    """The one wire form of an aware `datetime`: UTC, microseconds, `Z`. Raises `ValueError` for a naive one."""
    if instant.tzinfo is None:
        raise ValueError("A timestamp on the wire needs a time zone; pass an aware datetime.")
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def instant(text: str) -> datetime:
    """The aware `datetime` of a wire timestamp."""
    return datetime.fromisoformat(text)


class ContentReference(BaseModel):
    """The four-tuple that names one immutable, content-addressed object wherever it travels."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    ref: Identifier
    schema_version: Version
    digest_algorithm_version: DigestAlgorithm = DIGEST_ALGORITHM
    digest: Sha256


_PARTS: tuple[tuple[str, Any], ...] = (
    ("ref", Identifier),
    ("schema_version", Version),
    ("digest_algorithm_version", DigestAlgorithm),
    ("digest", Sha256),
)


@dataclass_transform(kw_only_default=True, field_specifiers=(Field,))
class _ContractType(ModelMetaclass):
    """Replaces each `ContentReference` annotation by its four wire fields, and adds the value as a property."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any) -> type:
        annotations: dict[str, Any] = namespace.get("__annotations__", {})
        flattened: dict[str, Any] = {}
        references: list[str] = []
        for field, annotation in annotations.items():
            if annotation is not ContentReference:
                flattened[field] = annotation
                continue
            references.append(field)
            flattened |= {f"{field}_{part}": kind for part, kind in _PARTS}
            namespace[field] = property(_reader(field))
        namespace["__annotations__"] = flattened
        inherited = [name for base in bases for name in getattr(base, "reference_fields", ())]
        namespace["reference_fields"] = tuple(inherited + references)
        return cast(type, super().__new__(mcs, name, bases, namespace, **kwargs))


def _reader(field: str) -> Any:
    names = [(part, f"{field}_{part}") for part, _ in _PARTS]

    def read(self: BaseModel) -> ContentReference:
        return ContentReference.model_construct(**{part: getattr(self, name) for part, name in names})

    return read


class Contract(BaseModel, metaclass=_ContractType):
    """One closed wire object: camelCase, unknown fields refused, no coercion, absent instead of null."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )

    reference_fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **values: Any) -> None:
        for field in self.reference_fields:
            reference = values.pop(field, None)
            if reference is not None:
                values |= {f"{field}_{part}": getattr(reference, part) for part, _ in _PARTS}
        super().__init__(**values)

    # Tells pydantic that validation may build the object without calling this constructor, which only flattens.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # pydantic's own marker on a function

    def wire(self) -> dict[str, Any]:
        """The JSON object, with absent optional fields left out."""
        return self.model_dump(exclude_none=True)

    def canonical(self) -> bytes:
        """RFC 8785 bytes. Raises `NotCanonicalSafe`."""
        return encode_trusted(self.wire())

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The object in canonical bytes; refuses any other form of it. Raises `ContractViolation`."""
        try:
            decode(data)
            return cls.model_validate_json(data)
        except (ValidationError, NotCanonicalSafe) as error:
            raise ContractViolation(f"{cls.__name__}: {describe(error)}") from error

    @classmethod
    def from_wire(cls, value: Mapping[str, Any]) -> Self:
        """The object in a decoded JSON value. Raises `ContractViolation`."""
        try:
            return cls.model_validate_json(encode_trusted(value))
        except (ValidationError, NotCanonicalSafe) as error:
            raise ContractViolation(f"{cls.__name__}: {describe(error)}") from error


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
    contract_version: ClassVar[str] = ""
    excluded_fields: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(
        cls, *, own: str = "", version: str = "", excluded: tuple[str, ...] = (), **kwargs: Any
    ) -> None:
        super().__init_subclass__(**kwargs)
        if own:
            cls.own_field, cls.contract_version = own, version
            hidden = (f"{own}_ref", f"{own}_digest", *excluded)
            cls.excluded_fields = frozenset(to_camel(name) for name in hidden)

    @classmethod
    def issue(cls, *, ref: str, **fields: Any) -> Self:
        """A new object with its digest computed. Raises `ContractViolation` if the fields do not fit."""
        own = cls.own_field
        try:
            draft = cls(
                **fields,
                **{
                    f"{own}_ref": ref,
                    f"{own}_schema_version": cls.contract_version,
                    f"{own}_digest_algorithm_version": DIGEST_ALGORITHM,
                    f"{own}_digest": "0" * 64,
                },
            )
        except ValidationError as error:
            raise ContractViolation(f"{cls.__name__}: {describe(error)}") from error
        return draft.model_copy(update={f"{own}_digest": draft.recompute_digest()})

    def candidate(self) -> dict[str, Any]:
        """What the digest covers."""
        return {key: value for key, value in self.wire().items() if key not in self.excluded_fields}

    def recompute_digest(self) -> str:
        """The digest the stored one must equal."""
        return sha256_hex(encode_trusted(self.candidate()))

    @property
    def reference(self) -> ContentReference:
        """The object's own four-tuple."""
        return cast(ContentReference, getattr(self, self.own_field))

    def ensure_digest(self) -> Self:
        """The object itself, proven. Raises `ContractViolation` if digest or schema version is not its own."""
        own = self.reference
        if own.schema_version != self.contract_version:
            raise ContractViolation(f"{type(self).__name__}: unknown schema version {own.schema_version!r}.")
        if own.digest != self.recompute_digest():
            raise ContractViolation(f"{type(self).__name__}: the digest does not match the content.")
        return self


