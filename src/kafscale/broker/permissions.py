"""What a request needs: API by resource by operation, in one table.

The law: what is not listed here is not asked, and what is listed is; a test walks the table with
real requests. The operations are those that Kafka documents for its protocol.
"""

from typing import Any, Final, NamedTuple

from kafscale.metadata.access_model import Operation, ResourceType
from kafscale.protocol.api import Api


class Need(NamedTuple):
    """An operation on a resource of some type."""

    resource_type: ResourceType
    operation: Operation


PERMISSIONS: Final[dict[str, tuple[Need, ...]]] = {}
"""What each API may ask for, by its name; an API without needs has an empty entry."""


def is_listed(api: Api[Any, Any], operation: Operation, resource_type: ResourceType) -> bool:
    return Need(resource_type, operation) in PERMISSIONS[api.name]
