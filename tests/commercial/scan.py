"""Everything that the commercial side wrote, as one text to look for what must not stand in it (C7)."""

from config.owners import owner_named, with_markers
from config.provision import models_of
from tests.commercial.make import rows


def commercial_text() -> str:
    """Every row of every commercial table, and of the markers beside the business, column by column."""
    tables = [
        (owner_named("billing").read_alias, model._meta.db_table)
        for model in models_of(owner_named("billing"))
        if model._meta.app_label == "commercial"
    ]
    tables += [(owner.read_alias, "commercial_markers") for owner in with_markers()]
    return "\n".join(text for alias, table in tables for (text,) in rows(f"SELECT t::text FROM {table} t", alias=alias))


def found_in(text: str, *secrets: str) -> list[str]:
    """Those of the secrets, or parts of them, that the text holds, whatever their case."""
    parts = {part for secret in secrets for part in (secret, *secret.split(), *secret.rsplit(".", 1)[:1])}
    return sorted(part for part in parts if len(part) > 3 and part.lower() in text.lower())
