"""The bar of a period: used, held and free."""

from billing.commercial.fullness import Fullness
from config.readonly_admin import Part, Share


def share(full: Fullness, *, unit: str) -> Share:
    """Used, then held, of the limit."""
    parts = (Part("used", full.used, "tone-work"), Part("held", full.held, "tone-warn"))
    return Share(full.hard_limit, parts, unit)
