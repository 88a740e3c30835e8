"""Authorized operations of groups, where Kafscale differs from Kafka on purpose."""

from msgspec.structs import replace

from conformance.groups.comparison import Response
from kafscale.metadata.access.model import Operation


def without_configs(response: Response) -> Response:
    """Groups have no configs of their own here, so these cannot be described or altered."""
    configs = 1 << Operation.DESCRIBE_CONFIGS | 1 << Operation.ALTER_CONFIGS
    groups = [
        replace(group, authorized_operations=group.authorized_operations & ~configs)
        for group in response.groups
    ]
    return replace(response, groups=groups)
