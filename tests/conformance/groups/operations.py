"""What a client may do to a group, where we differ from Kafka on purpose."""

from msgspec.structs import replace

from conformance.groups.duet import Answer
from kafscale.metadata.access.model import Operation


def without_configs(answer: Answer) -> Answer:
    """Groups have no settings of their own here, so that nobody can describe or alter them."""
    configs = 1 << Operation.DESCRIBE_CONFIGS | 1 << Operation.ALTER_CONFIGS
    groups = [
        replace(group, authorized_operations=group.authorized_operations & ~configs)
        for group in answer.groups
    ]
    return replace(answer, groups=groups)
