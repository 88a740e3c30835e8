"""What a client may do, as Kafka counts it: one bit for each operation (KIP-430).

While there is no authorization, anybody may do anything that there is to be done.
"""

import enum
from typing import Final


class Operation(enum.IntFlag):
    """The operations, numbered as Kafka's ACLs number them."""

    READ = 1 << 3
    WRITE = 1 << 4
    CREATE = 1 << 5
    DELETE = 1 << 6
    ALTER = 1 << 7
    DESCRIBE = 1 << 8
    CLUSTER_ACTION = 1 << 9
    DESCRIBE_CONFIGS = 1 << 10
    ALTER_CONFIGS = 1 << 11
    IDEMPOTENT_WRITE = 1 << 12


_ANYWHERE: Final = (
    Operation.CREATE
    | Operation.ALTER
    | Operation.DESCRIBE
    | Operation.DESCRIBE_CONFIGS
    | Operation.ALTER_CONFIGS
)

ON_TOPIC: Final = int(_ANYWHERE | Operation.READ | Operation.WRITE | Operation.DELETE)
ON_GROUP: Final = int(Operation.READ | Operation.DESCRIBE | Operation.DELETE)
ON_CLUSTER: Final = int(_ANYWHERE | Operation.CLUSTER_ACTION | Operation.IDEMPOTENT_WRITE)

NOT_ASKED: Final = -0x8000_0000
"""Stands where a client did not ask what it may do."""
