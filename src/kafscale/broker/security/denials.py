"""What is told to those who may not do something: an error of the kind of thing that they named."""

from typing import Final

from kafscale.errors import (
    AuthorizationError,
    ClusterAuthorizationError,
    GroupAuthorizationError,
    TopicAuthorizationError,
    TransactionalIdAuthorizationError,
)
from kafscale.metadata.access.model import ResourceType

_ERRORS: Final[dict[ResourceType, type[AuthorizationError]]] = {
    ResourceType.TOPIC: TopicAuthorizationError,
    ResourceType.GROUP: GroupAuthorizationError,
    ResourceType.CLUSTER: ClusterAuthorizationError,
    ResourceType.TRANSACTIONAL_ID: TransactionalIdAuthorizationError,
}


def denial(resource_type: ResourceType, name: str) -> AuthorizationError:
    """The error for a resource; it says no more than that it is not allowed."""
    kind = resource_type.name.lower().replace("_", " ")
    return _ERRORS[resource_type](f"Not authorized to access {kind} {name!r}.")
