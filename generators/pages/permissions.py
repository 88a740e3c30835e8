"""docs/permissions.md: the operations that each API requires, from the broker's table."""

from collections.abc import Iterator
from typing import Final

from kafscale.broker.security.permissions import PERMISSIONS

_HEAD: Final = """\
# Permissions

The operations that each API requires if `authorization.enabled` is true: see
[security.md](security.md). `make docs` generates this page from the table that the broker uses.
READ, WRITE, DELETE and ALTER imply DESCRIBE, ALTER_CONFIGS implies DESCRIBE_CONFIGS. Where a
resource is *left out*, the response is as if it did not exist. Requests for a client's own
authorized operations (KIP-430) are always answered.

| API | operation | on | needed when | otherwise |
|---|---|---|---|---|
"""


def page() -> str:
    """The text of the page."""
    return _HEAD + "\n".join(_rows()) + "\n"


def _rows() -> Iterator[str]:
    for api, requirements in PERMISSIONS.items():
        if not requirements:
            yield f"| {api} | none | | | |"
        for each in requirements:
            alternative = f", or {each.alternative}" if each.alternative else ""
            otherwise = "left out" if each.is_filtered else each.code.name
            yield (
                f"| {api} | {each.operation.name} | {each.resource_type.name}{alternative} |"
                f" {each.when or 'always'} | {otherwise} |"
            )
