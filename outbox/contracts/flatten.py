"""A content reference is one value in Python and four fields on the wire; only here does one become the other."""

from typing import Any, dataclass_transform, get_args

from pydantic import BaseModel, Field
from pydantic._internal._model_construction import ModelMetaclass

from outbox.contracts.fields import REFERENCE_PARTS, ContentReference


@dataclass_transform(kw_only_default=True, field_specifiers=(Field,))
class ContractType(ModelMetaclass):
    """Replaces each `ContentReference` annotation by its four wire fields, and adds the value as a property."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any) -> type:
        annotations = _annotations(namespace)
        own = kwargs.get("own")
        if own and own not in annotations:
            annotations = {own: ContentReference, **annotations}
        flattened: dict[str, Any] = {}
        references = [field for base in bases for field in getattr(base, "reference_fields", ())]
        for field, annotation in annotations.items():
            if annotation is ContentReference:
                references.append(field)
                flattened |= {f"{field}_{part}": kind for part, kind in REFERENCE_PARTS.items()}
                namespace[field] = property(_reader(field))
            elif isinstance(annotation, str) or _holds_reference(annotation):
                raise TypeError(
                    f"{name}.{field}: write the annotation `ContentReference` itself, not as a string and not inside "
                    f"another type; where it may be absent, give the object one branch with it and one without."
                )
            else:
                flattened[field] = annotation
        namespace["__annotations__"] = flattened
        namespace["reference_fields"] = tuple(dict.fromkeys(references))
        return super().__new__(mcs, name, bases, namespace, **kwargs)


def _annotations(namespace: dict[str, Any]) -> dict[str, Any]:
    # From Python 3.14 on a class body holds the function that makes them (PEP 649); 1 asks it for the values.
    make = namespace.pop("__annotate_func__", None)
    return dict(make(1)) if make else dict(namespace.get("__annotations__", {}))


def _holds_reference(annotation: Any) -> bool:
    return annotation is ContentReference or any(_holds_reference(part) for part in get_args(annotation))


def _reader(field: str) -> Any:
    names = [(part, f"{field}_{part}") for part in REFERENCE_PARTS]

    def read(self: BaseModel) -> ContentReference:
        values = self.__dict__
        return _reference({part: values[name] for part, name in names})

    return read


def _reference(parts: dict[str, Any]) -> ContentReference:
    # What `model_construct` does, at a third of its price: the parts come out of an object that was validated.
    reference = ContentReference.__new__(ContentReference)
    object.__setattr__(reference, "__dict__", parts)
    object.__setattr__(reference, "__pydantic_fields_set__", set(parts))
    object.__setattr__(reference, "__pydantic_extra__", None)
    object.__setattr__(reference, "__pydantic_private__", None)
    return reference
