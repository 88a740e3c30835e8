"""ACLs, managed with librdkafka's admin client.

acls = Acls(AdminClient(...))
acls.add(acl_binding("User:alice", "WRITE", topic="orders"))
"""

from collections.abc import Sequence

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

WAIT_S = 15
CLUSTER = "kafka-cluster"


def acl_binding(
    principal: str,
    operation: str,
    *,
    topic: str = "",
    group: str = "",
    prefixed: bool = False,
    denied: bool = False,
    host: str = "*",
) -> AclBinding:
    """An ACL on a topic, a group or, if neither is named, the cluster."""
    kind, name = ResourceType.BROKER, CLUSTER
    if topic or group:
        kind, name = (ResourceType.TOPIC, topic) if topic else (ResourceType.GROUP, group)
    return AclBinding(
        kind,
        name,
        ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL,
        principal,
        host,
        AclOperation[operation],
        AclPermissionType.DENY if denied else AclPermissionType.ALLOW,
    )


class Acls:
    """The ACLs of a cluster."""

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin

    def add(self, *bindings: AclBinding) -> None:
        for future in self._admin.create_acls(list(bindings)).values():
            future.result(timeout=WAIT_S)

    def delete_of(self, *principals: str) -> None:
        """Delete all ACLs of these principals."""
        filters = [_filter_for(principal) for principal in principals]
        for future in self._admin.delete_acls(filters).values():
            future.result(timeout=WAIT_S)

    def describe(self, principal: str) -> Sequence[AclBinding]:
        return self._admin.describe_acls(_filter_for(principal)).result(timeout=WAIT_S)


def _filter_for(principal: str) -> AclBindingFilter:
    return AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        principal,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
