"""What a client may do to a group, where we differ from Kafka on purpose."""

from msgspec.structs import replace

from conformance.groups.duet import Answer
from kafscale.broker.operations import Operation


def without_configs(answer: Answer) -> Answer:
    """Groups have no settings of their own here, so that nobody can describe or alter them."""
    configs = Operation.DESCRIBE_CONFIGS | Operation.ALTER_CONFIGS
    groups = [
        replace(group, authorized_operations=group.authorized_operations & ~int(configs))
        for group in answer.groups
    ]
    return replace(answer, groups=groups)
