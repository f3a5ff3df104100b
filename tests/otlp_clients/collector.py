"""The collector's configuration as the collector reads it: variables replaced, and what its statements set."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

PLACE = Path(__file__).resolve().parent.parent.parent / "deploy" / "otel-collector"
VARIABLE = re.compile(r"\$\{env:([A-Z_]+)(?::-([^}]*))?\}")
SETS = re.compile(r'set\(log\.attributes\["([a-z_.]+)"\], "([^"]*)"\)')
RETRYABLE = frozenset({429, 502, 503, 504})
"""Answers at which the collector's otlphttp exporter keeps a batch; at every other refusal it drops it."""


def configuration(variables: Mapping[str, str]) -> Any:
    """The configuration with these variables. Raises `KeyError` for one that has no default and is not given."""

    def value(found: re.Match[str]) -> str:
        name, default = found[1], found[2]
        return variables[name] if default is None else variables.get(name, default)

    return yaml.safe_load(VARIABLE.sub(value, (PLACE / "config.yaml").read_text()))


def required() -> set[str]:
    """Variables without a default."""
    return {name for name, default in VARIABLE.findall((PLACE / "config.yaml").read_text()) if not default} - OPTIONAL


OPTIONAL = {"BILLING_ORGANIZATION_ID", "BILLING_ROBOT_ID", "BILLING_CR_NAME"}
"""Their default is empty."""


def attribution(found: Any) -> dict[str, str]:
    """What is set on every record, in the order of the pipeline."""
    statements = found["processors"]["transform/attribution"]["log_statements"]
    matches = [SETS.fullmatch(statement) for statement in statements]
    assert all(matches), statements
    return {match[1]: match[2] for match in matches if match}
