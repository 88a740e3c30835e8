"""Documentation of the protocol: docs/protocol.md and `kafscale protocol`."""

import inspect
import sys
from collections.abc import Collection
from typing import Any

from kafscale.protocol.api import NEVER, Api
from kafscale.protocol.apis import APIS

HEAD = """\
# The Kafka protocol

<!-- Written by `make docs` from the table in src/kafscale/protocol/apis.py. -->

Every Kafka API whose messages Kafscale reads and writes, in all versions from the first to the
newest stable one of Kafka 4. `kafscale protocol show produce 9` prints the fields of one.

*served* says whether the broker supports the API; it then supports all of these versions and
advertises them in ApiVersions. *flexible* is the first version with compact lengths and tagged
fields.

| key | API | served | versions | flexible | what it is for |
|---:|---|---|---|---:|---|
"""


def page(served: Collection[int]) -> str:
    """The text of docs/protocol.md; `served` are the keys of the supported APIs."""
    rows = [
        f"| {api.key} | {api.name} | {'yes' if api.key in served else ''} | {versions(api)} |"
        f" {flexible(api)} | {purpose(api)} |"
        for api in APIS
    ]
    notes = [f"## {api.name}\n\n{version_notes(api)}\n" for api in APIS if version_notes(api)]
    return HEAD + "\n".join(rows) + "\n\n# Version notes\n\n" + "\n".join(notes)


def versions(api: Api[Any, Any]) -> str:
    first, last = api.version_min, api.version_max
    return str(first) if first == last else f"{first} to {last}"


def flexible(api: Api[Any, Any]) -> str:
    return "never" if api.flexible_since == NEVER else str(api.flexible_since)


def purpose(api: Api[Any, Any]) -> str:
    """The first sentence of the module that declares the API."""
    first_line = _documentation(api).partition("\n")[0]
    sentence = first_line.partition(": ")[2]
    return sentence[:1].upper() + sentence[1:]


def version_notes(api: Api[Any, Any]) -> str:
    """The version notes of the API, as a list."""
    return _documentation(api).partition("Version notes:\n")[2].strip()


def _documentation(api: Api[Any, Any]) -> str:
    return inspect.getdoc(sys.modules[api.request.__module__]) or ""
