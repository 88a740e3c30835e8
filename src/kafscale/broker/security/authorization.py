"""`Access`: what clients may do, asked by handlers, answered by rules, told to the audit log.

The laws: a handler asks only for what the table in `permissions` says of its API, so that the table
is the truth; every denial is counted and told, but for questions whose no is an everyday answer,
such as which topics somebody may see. What the rules say is left to the authorizer.
"""

from typing import TYPE_CHECKING

from kafscale.broker.security.audit import Audit
from kafscale.broker.security.permissions import is_listed
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.security.acl.authorizer import Authorizer

if TYPE_CHECKING:
    from kafscale.broker.requests.context import RequestContext


class Access:
    """The rules of a cluster, for the requests of one broker."""

    def __init__(self, authorizer: Authorizer, audit: Audit) -> None:
        self._authorizer = authorizer
        self._audit = audit

    def allows(
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
            client.identity, client.host, operation, resource_type, name
        )
        if not allowed and not quiet:
            self._audit.denied(context, operation, resource_type, name)
        return allowed

    def allows_any(
        self, context: "RequestContext", operation: Operation, resource_type: ResourceType
    ) -> bool:
        assert is_listed(context.api, operation, resource_type), (context.api.name, operation)
        client = context.client
        return self._authorizer.allows_any(client.identity, client.host, operation, resource_type)
