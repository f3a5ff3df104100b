"""From an OTLP value of any kind to the stored value of a shape, or not at all (T6, T7).

Numbers come in every encoding that real emitters use: Go and Python send integers, JavaScript sends doubles for numbers
beyond 2^53 and strings where it uses BigInt, collectors that insert attributes from the environment send strings.
"""

import math
import re
from collections.abc import Callable
from typing import Final

from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from metering.otlp.fields import MAX_COUNT, MAX_LEVEL, MAX_TEXT, Shape

Value = str | int | float | bool | None
"""A stored value; None where nothing was said."""

DIGITS = re.compile(r"[0-9]{1,16}")
DECIMAL = re.compile(r"[0-9]{1,16}(\.[0-9]{1,32})?([eE][+-]?[0-9]{1,2})?")
FLAGS: Final = {"true": True, "false": False}
EXACT_DOUBLE: Final = 2**53


class Invalid(ValueError):
    """The value is not one of its shape. Permanent: correct the emitter."""


def _text(value: AnyValue) -> Value:
    text = value.string_value
    if not text:
        if value.WhichOneof("value") not in {None, "string_value"}:
            raise Invalid
        return None
    if len(text) > MAX_TEXT or "\x00" in text:
        raise Invalid
    return text


def _identifier(value: AnyValue) -> Value:
    if value.WhichOneof("value") == "int_value":
        if value.int_value < 0:
            raise Invalid
        return str(value.int_value)
    return _text(value)


def _count(value: AnyValue) -> Value:
    number: float
    match value.WhichOneof("value"):
        case "int_value":
            number = value.int_value
        case "double_value":
            number = value.double_value
            if not number.is_integer() or abs(number) > EXACT_DOUBLE:
                raise Invalid
        case "string_value":
            text = value.string_value
            if not text:
                return None
            if not DIGITS.fullmatch(text):
                raise Invalid
            number = int(text)
        case None:
            return None
        case _:
            raise Invalid
    if not 0 <= number <= MAX_COUNT:
        raise Invalid
    return int(number)


def _level(value: AnyValue) -> Value:
    match value.WhichOneof("value"):
        case "double_value":
            number = value.double_value
        case "int_value":
            number = float(value.int_value)
        case "string_value":
            text = value.string_value
            if not text:
                return None
            if not DECIMAL.fullmatch(text):
                raise Invalid
            number = float(text)
        case None:
            return None
        case _:
            raise Invalid
    if not (math.isfinite(number) and 0 <= number <= MAX_LEVEL):
        raise Invalid
    return number + 0.0  # -0.0 is 0.0: equal numbers are equal content


def _flag(value: AnyValue) -> Value:
    match value.WhichOneof("value"):
        case "bool_value":
            return bool(value.bool_value)
        case "string_value":
            text = value.string_value
            if not text:
                return None
            if text not in FLAGS:
                raise Invalid
            return FLAGS[text]
        case None:
            return None
        case _:
            raise Invalid


READERS: dict[Shape, Callable[[AnyValue], Value]] = {
    Shape.TEXT: _text,
    Shape.IDENTIFIER: _identifier,
    Shape.COUNT: _count,
    Shape.LEVEL: _level,
    Shape.FLAG: _flag,
}
"""Each returns the stored value, None for an empty string or a value without any kind, or raises `Invalid`."""
