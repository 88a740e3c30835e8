"""`AclFilter`: selects ACLs to describe or delete. Pure.

Kafka's rules (KIP-140, KIP-290): None and ANY match everything. Pattern type ANY compares the name
as written; MATCH takes it as a resource name, and finds all ACLs that apply to it.
"""

import msgspec

from kafscale.metadata.access.model import (
    ANY_NAME,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)


class AclFilter(msgspec.Struct, frozen=True):
    """Conditions on the fields of an ACL."""

    resource_type: ResourceType = ResourceType.ANY
    pattern_type: PatternType = PatternType.ANY
    resource_name: str | None = None
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, acl: Acl) -> bool:
        return (
            self.principal in {None, acl.principal}
            and self.host in {None, acl.host}
            and self.resource_type in {ResourceType.ANY, acl.resource_type}
            and self.operation in {Operation.ANY, acl.operation}
            and self.permission in {Permission.ANY, acl.permission}
            and self._matches_name(acl)
        )

    def only(self) -> Acl | None:
        """The single ACL that can match, or None if several can."""
        if (
            self.resource_name is None
            or self.principal is None
            or self.host is None
            or self.resource_type is ResourceType.ANY
            or self.pattern_type in {PatternType.ANY, PatternType.MATCH}
            or self.operation is Operation.ANY
            or self.permission is Permission.ANY
        ):
            return None
        return Acl(
            self.resource_type,
            self.pattern_type,
            self.resource_name,
            self.principal,
            self.host,
            self.operation,
            self.permission,
        )

    def _matches_name(self, acl: Acl) -> bool:
        name = self.resource_name
        if self.pattern_type is PatternType.MATCH:
            if name is None:
                return True
            if acl.pattern_type is PatternType.PREFIXED:
                return name.startswith(acl.resource_name)
            return acl.resource_name in {name, ANY_NAME}
        return self.pattern_type in {PatternType.ANY, acl.pattern_type} and name in {
            None,
            acl.resource_name,
        }
