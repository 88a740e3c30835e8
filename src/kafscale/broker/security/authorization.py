"""Authorization of requests: handlers ask, ACLs decide, denials go to the audit log.

Invariants: a handler asks only for what the table in `permissions` lists for its API, so that the
table is complete. Every denial is counted and logged, except where being denied is normal, such as
filtering a list of topics. `Authorizer` evaluates the ACLs.

The second part computes the operations that a client may perform on a resource, one bit each
(KIP-430). If authorization is disabled, every operation is allowed.
"""

from typing import TYPE_CHECKING, Final

from kafscale.broker.security.audit import AuditLog
from kafscale.broker.security.permissions import is_listed
from kafscale.metadata.access.model import CLUSTER_NAME, Operation, ResourceType
from kafscale.security.acl.authorizer import Authorizer

if TYPE_CHECKING:
    from kafscale.broker.requests.context import RequestContext


class RequestAuthorizer:
    """Authorizes the requests of one broker by the cluster's ACLs."""

    def __init__(self, authorizer: Authorizer, audit: AuditLog) -> None:
        self._authorizer = authorizer
        self._audit = audit

    def is_authorized(
        self,
        context: "RequestContext",
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        quiet: bool = False,
    ) -> bool:
        assert is_listed(context.api, operation, resource_type), (context.api.name, operation)
        client = context.client
        allowed = self._authorizer.allows(
            client.principal, client.host, operation, resource_type, name
        )
        if not allowed and not quiet:
            self._audit.denied(context, operation, resource_type, name)
        return allowed

    def is_authorized_for_any(
        self, context: "RequestContext", operation: Operation, resource_type: ResourceType
    ) -> bool:
        assert is_listed(context.api, operation, resource_type), (context.api.name, operation)
        client = context.client
        return self._authorizer.allows_any(client.principal, client.host, operation, resource_type)


# --- authorized operations (KIP-430) --------------------------------------------------------------

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
    ResourceType.GROUP: (*_CONFIGS, Operation.READ, Operation.DELETE, Operation.DESCRIBE),
    ResourceType.CLUSTER: (
        *_CONFIGS,
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""The operations of each resource type."""

ALL_OPERATIONS: Final = {
    resource_type: sum(1 << operation for operation in operations)
    for resource_type, operations in _OPERATIONS.items()
}

OPERATIONS_NOT_REQUESTED: Final = -0x8000_0000
"""The value if the client did not request its authorized operations."""


def authorized_operations(context: "RequestContext", resource_type: ResourceType, name: str) -> int:
    """The operations that the client may perform on a resource, one bit each."""
    if context.broker.authorizer is None:
        return ALL_OPERATIONS[resource_type]
    return sum(
        1 << operation
        for operation in _OPERATIONS[resource_type]
        if context.is_authorized(operation, resource_type, name, quiet=True)
    )


def authorized_cluster_operations(context: "RequestContext") -> int:
    """The operations that the client may perform on the cluster; none if it may not describe it."""
    if not context.is_authorized(Operation.DESCRIBE, ResourceType.CLUSTER):
        return 0
    return authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME)
