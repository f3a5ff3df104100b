"""What a billing event consists of: the fields of both kinds, how each is read, and what is refused (T5, T6, T8).

The names are the contract's own. They are the attribute keys, the columns (but for `k8s.pod.uid`), and the closed list
of reasons under which a record is dropped, for a missing and for an invalid value alike (T7).
"""

from dataclasses import dataclass
from enum import Enum, StrEnum

MAX_TEXT = 255
"""Characters of a stored text: Kubernetes allows 253 for its longest names, and an index must hold an event id."""
MAX_COUNT = 2**53 - 1
"""The largest token count: what every JSON reader of the chain keeps exactly. 2^63 tokens are a defect, not usage."""
MAX_LEVEL = 1e15
"""The largest utilization: beyond it a double no longer tells neighbours apart to a tenth."""


class Kind(StrEnum):
    """The two kinds of billing events, by their `event_type`."""

    LLM_BILLING = "llm_billing"
    """One call of a model. Also what a record without `event_type` is."""
    RESOURCE_UTILIZATION = "resource_utilization"
    """One sample of a container's resource."""


class Field(StrEnum):
    """Every field of the contract, and so every reason to drop a record."""

    EVENT_TYPE = "event_type"
    """Names neither kind."""
    EVENT_ID = "event_id"
    TENANT_NAME = "tenant_name"
    NAMESPACE = "namespace"
    OCCURRED_AT = "occurred_at"
    """Neither the time of the event nor that of its observation, in the future, or before what is retained."""
    MANAGER_KEY_ID = "manager_key_id"
    """Required of gateway tokens, whose events nothing else attributes."""
    MODEL_NAME = "model_name"
    PROVIDER = "provider"
    PROMPT_TOKENS = "prompt_tokens"
    COMPLETION_TOKENS = "completion_tokens"
    CACHED_INPUT_TOKENS = "cached_input_tokens"
    RESOURCE_TYPE = "resource_type"
    UTILIZATION = "utilization"
    ABOVE_THRESHOLD = "above_threshold"
    ORGANIZATION_ID = "organization_id"
    ROBOT_ID = "robot_id"
    CR_NAME = "cr_name"
    POD_NAME = "pod_name"
    CONTAINER_NAME = "container_name"
    K8S_POD_UID = "k8s.pod.uid"


class Shape(Enum):
    """How a value is read. Whatever is not listed for a shape is invalid."""

    TEXT = "text"
    """A string without U+0000, of at most `MAX_TEXT` characters; an empty one says nothing."""
    IDENTIFIER = "identifier"
    """As text, or a whole number that is not negative, which becomes its decimal digits."""
    COUNT = "count"
    """0 to `MAX_COUNT`: an integer, a double without fraction, or a string of decimal digits."""
    LEVEL = "level"
    """0 to `MAX_LEVEL`: a finite double, an integer, or a string of a decimal number."""
    FLAG = "flag"
    """A boolean, or the string true or false."""


@dataclass(frozen=True, slots=True)
class Column:
    """One stored field of one kind."""

    field: Field
    shape: Shape
    required: bool

    @property
    def name(self) -> str:
        """The column's name in the table."""
        return self.field.value.replace(".", "_")


def _text(field: Field, *, required: bool = False) -> Column:
    return Column(field, Shape.TEXT, required)


def _identifier(field: Field) -> Column:
    return Column(field, Shape.IDENTIFIER, required=False)


COLUMNS: dict[Kind, tuple[Column, ...]] = {
    Kind.LLM_BILLING: (
        _text(Field.EVENT_ID, required=True),
        _text(Field.TENANT_NAME, required=True),
        _text(Field.NAMESPACE, required=True),
        _identifier(Field.MANAGER_KEY_ID),
        _text(Field.MODEL_NAME, required=True),
        _text(Field.PROVIDER, required=True),
        _identifier(Field.ORGANIZATION_ID),
        _identifier(Field.ROBOT_ID),
        _text(Field.CR_NAME),
        _text(Field.K8S_POD_UID),
        Column(Field.PROMPT_TOKENS, Shape.COUNT, required=True),
        Column(Field.COMPLETION_TOKENS, Shape.COUNT, required=True),
        Column(Field.CACHED_INPUT_TOKENS, Shape.COUNT, required=False),
    ),
    Kind.RESOURCE_UTILIZATION: (
        _text(Field.EVENT_ID, required=True),
        _text(Field.TENANT_NAME, required=True),
        _text(Field.NAMESPACE, required=True),
        _text(Field.RESOURCE_TYPE, required=True),
        _identifier(Field.ORGANIZATION_ID),
        _identifier(Field.ROBOT_ID),
        _text(Field.CR_NAME),
        _text(Field.POD_NAME),
        _text(Field.CONTAINER_NAME),
        Column(Field.UTILIZATION, Shape.LEVEL, required=True),
        Column(Field.ABOVE_THRESHOLD, Shape.FLAG, required=True),
    ),
}
"""What each kind stores of its attributes, texts first; beside it stand `occurred_at`, `cluster_id`, `source_mode`."""

PRECEDENCE = tuple(Field)
"""A record with several faults is dropped once, under the first of them in this order."""
