"""What a client may do, as Kafka counts it: one bit for each operation (KIP-430).

Where nobody is authorized, anybody may do anything that there is to be done. A client that may not
even see the cluster is told that it may do nothing to it.
"""

from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.metadata.access.model import CLUSTER_NAME, Operation, ResourceType

_CONFIGS: Final = (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)

_OPERATIONS: Final = {
    ResourceType.TOPIC: (
        *_CONFIGS,
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
    ),
    ResourceType.GROUP: (Operation.READ, Operation.DELETE, Operation.DESCRIBE),
    ResourceType.CLUSTER: (
        *_CONFIGS,
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""All that can be done to a resource. Groups have no configs here, as they do in Kafka."""

_ALL: Final = {type_: sum(1 << each for each in all_) for type_, all_ in _OPERATIONS.items()}

ON_TOPIC: Final = _ALL[ResourceType.TOPIC]
ON_GROUP: Final = _ALL[ResourceType.GROUP]
ON_CLUSTER: Final = _ALL[ResourceType.CLUSTER]

NOT_ASKED: Final = -0x8000_0000
"""Stands where a client did not ask what it may do."""


def allowed(context: RequestContext, resource_type: ResourceType, name: str) -> int:
    """What the client may do to a resource."""
    if context.broker.access is None:
        return _ALL[resource_type]
    return sum(
        1 << operation
        for operation in _OPERATIONS[resource_type]
        if context.may(operation, resource_type, name, quiet=True)
    )


def allowed_on_cluster(context: RequestContext) -> int:
    """What the client may do to the cluster."""
    if not context.may(Operation.DESCRIBE, ResourceType.CLUSTER):
        return 0
    return allowed(context, ResourceType.CLUSTER, CLUSTER_NAME)
