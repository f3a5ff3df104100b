"""What the scene of connectors and attachments came to: what was wrong, and the lines for people."""

from typing import Any

EXPECTED: dict[str, dict[str, frozenset[int]]] = {
    "connector": {
        "new": frozenset({200}),
        "again": frozenset({200}),
        "conflicting": frozenset({409}),
        "forged": frozenset({401}),
        "tooMany": frozenset({429}),
    },
    "attachments": {
        "uploaded": frozenset({200, 201}),
        "again": frozenset({200}),
        "replaced": frozenset({200}),
        "tooLarge": frozenset({429}),
    },
}
"""The statuses that are right, by what is done."""


def surprises(played: dict[str, Any]) -> list[str]:
    """What did not go as it must."""
    found = [
        f"{scene}: {what} was answered {status}"
        for scene, wanted in EXPECTED.items()
        for what, right in wanted.items()
        for status in played[scene][what]
        if status not in right
    ]
    found += [
        f"attachments: the file is not as it was ({what})"
        for what in ("stoodAfterRefusal", "stoodAfterRollback")
        if not played["attachments"][what]
    ]
    return found + [f"quota: {name} holds {one['held']}" for name, one in played["quota"].items() if one["held"]]


def resource_lines(played: dict[str, Any]) -> list[str]:
    """The scene for people."""
    events, files = played["connector"], played["attachments"]
    lines = [
        f"connector   {len(events['new'])} events accepted, 1 replayed ({events['again'][0]}), 1 conflicting "
        f"({events['conflicting'][0]}), 1 forged ({events['forged'][0]}), 1 beyond quota ({events['tooMany'][0]})",
        f"attachments 1 uploaded and sent again, 1 replaced, 1 beyond quota ({files['tooLarge'][0]}), 1 removal rolled "
        f"back; the file {'stands' if files['stoodAfterRollback'] else 'is LOST'}",
        "quota       "
        + "; ".join(
            f"{name}: {one['used']:,} used, {one['held']:,} held, {one['free']:,} free of {one['limit']:,}"
            for name, one in played["quota"].items()
        ),
    ]
    return lines + [f"            NOT as it must be: {surprise}" for surprise in played["surprises"]]
