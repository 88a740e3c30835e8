"""`Authorizer`: whether somebody may do something, as the rules stand."""

from kafscale.auth.identity import Identity
from kafscale.metadata.access_model import Operation, ResourceType


class Authorizer:
    """Decides by rules."""

    def allows(
        self,
        identity: Identity,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        """Whether somebody may do something to a resource."""
        raise NotImplementedError

    def allows_any(
        self, identity: Identity, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether there is, or could be, a resource of that type that they may do it to."""
        raise NotImplementedError
