"""Goldens: for each example the raw JSON, its canonical bytes, and digests in the format of `sha256sum`.

`NAME.json` is for people: indented, in the order of declaration. `NAME.canonical.json` is what travels. An object with
a digest of its own also has `NAME.candidate.json`, the exact bytes that this digest covers. `NAME.sha256` lists the
digests of both, so that `sha256sum --check` proves them without any code of this project.
"""

import json
from collections.abc import Iterator
from typing import Any

from outbox.contracts.canonical import encode_trusted, sha256_hex
from outbox.contracts.publish.catalogue import Published


def golden_files(published: Published) -> Iterator[tuple[str, bytes]]:
    """(file name, bytes) of every golden of a contract."""
    for name, example in published.examples.items():
        canonical = example.canonical()
        files = {f"{name}.canonical.json": canonical}
        if published.excluded:
            owned: Any = example
            files[f"{name}.candidate.json"] = encode_trusted(owned.candidate())
        digests = "".join(f"{sha256_hex(data)}  {file}\n" for file, data in files.items())
        yield f"{name}.json", (json.dumps(example.wire(), indent=2, ensure_ascii=False) + "\n").encode()
        yield from files.items()
        yield f"{name}.sha256", digests.encode()
