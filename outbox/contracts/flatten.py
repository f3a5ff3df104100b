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
    ref, version, digest, algorithm = (f"{field}_{part}" for part in ContentReference._fields)

    def read(self: BaseModel) -> ContentReference:
        values = self.__dict__
        return ContentReference(values[ref], values[version], values[digest], values[algorithm])

    return read
