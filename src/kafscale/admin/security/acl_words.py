"""The words of rules: how people write operations and resources, and what goes with what. Pure.

>>> parse_operation("describe-configs"), called(Operation.DESCRIBE_CONFIGS)
(<Operation.DESCRIBE_CONFIGS: 10>, 'DescribeConfigs')
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from kafscale.metadata.access.model import ROLES, Operation, ResourceType

_SUPPORTED: Final[Mapping[ResourceType, frozenset[Operation]]] = {
    ResourceType.TOPIC: frozenset(
        {
            Operation.READ,
            Operation.WRITE,
            Operation.CREATE,
            Operation.DELETE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        }
    ),
    ResourceType.GROUP: frozenset(
        {
            Operation.READ,
            Operation.DELETE,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        }
    ),
    ResourceType.CLUSTER: frozenset(
        {
            Operation.CREATE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.CLUSTER_ACTION,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
            Operation.IDEMPOTENT_WRITE,
        }
    ),
    ResourceType.TRANSACTIONAL_ID: frozenset(
        {Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT}
    ),
    ResourceType.USER: frozenset({Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS}),
}
"""What can be done to a resource at all, as Kafka's AclEntry says."""

_NAMED: Final = {
    operation.name.replace("_", "").lower(): operation
    for operation in Operation
    if operation > Operation.ANY and operation not in ROLES
}


def parse_operation(text: str) -> Operation:
    """An operation by its name, in any of the ways that people write it."""
    operation = _NAMED.get(text.replace("_", "").replace("-", "").lower())
    if operation is None:
        known = ", ".join(called(each) for each in _NAMED.values())
        raise ValueError(f"{text!r} is not an operation; there are {known}")
    return operation


def called(word: IntEnum) -> str:
    """What people call an operation or a type of resource; a role is called one.

    >>> called(Operation.PRODUCER), called(ResourceType.TRANSACTIONAL_ID)
    ('role producer', 'TransactionalId')
    """
    if word in ROLES and isinstance(word, Operation):
        return f"role {word.name.lower()}"
    return "".join(part.capitalize() for part in word.name.split("_"))


def supported(kind: ResourceType, operation: Operation) -> bool:
    """Whether a rule about this can mean anything."""
    means = ROLES.get(operation, frozenset({operation}))
    return operation is Operation.ALL or bool(means & _SUPPORTED[kind])
