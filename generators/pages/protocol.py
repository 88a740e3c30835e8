"""docs/protocol.md: every Kafka API, from the table of APIs."""

from typing import Any

from kafscale.broker.requests.routes import ROUTES
from kafscale.protocol.api import Api
from kafscale.protocol.apis import APIS
from kafscale.protocol.docs import documentation, flexible, purpose, versions
from kafscale.protocol.messages.api_versions import API_VERSIONS

_HEAD = """\
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


def page() -> str:
    """The text of the page."""
    served = {API_VERSIONS.key, *(route.api.key for route in ROUTES)}
    rows = [
        f"| {api.key} | {api.name} | {'yes' if api.key in served else ''} | {versions(api)} |"
        f" {flexible(api)} | {purpose(api)} |"
        for api in APIS
    ]
    notes = [f"## {api.name}\n\n{_version_notes(api)}\n" for api in APIS if _version_notes(api)]
    return _HEAD + "\n".join(rows) + "\n\n# Version notes\n\n" + "\n".join(notes)


def _version_notes(api: Api[Any, Any]) -> str:
    """The version notes of the API, as a list."""
    return documentation(api).partition("Version notes:\n")[2].strip()
