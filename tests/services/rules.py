"""Rules about who may do what, made by librdkafka's admin client, as any operator may.

rules = Rules(AdminClient(...))
rules.add(rule("User:alice", "WRITE", topic="orders"))
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


def rule(
    principal: str,
    operation: str,
    *,
    topic: str = "",
    group: str = "",
    prefixed: bool = False,
    denied: bool = False,
    host: str = "*",
) -> AclBinding:
    """A rule about a topic, a group or, where neither is named, the cluster."""
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


class Rules:
    """The rules of a cluster."""

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin

    def add(self, *bindings: AclBinding) -> None:
        for future in self._admin.create_acls(list(bindings)).values():
            future.result(timeout=WAIT_S)

    def remove_of(self, *principals: str) -> None:
        """All rules of these."""
        filters = [_everything(principal) for principal in principals]
        for future in self._admin.delete_acls(filters).values():
            future.result(timeout=WAIT_S)

    def of(self, principal: str) -> Sequence[AclBinding]:
        return self._admin.describe_acls(_everything(principal)).result(timeout=WAIT_S)


def _everything(principal: str) -> AclBindingFilter:
    return AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        principal,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
