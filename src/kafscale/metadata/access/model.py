"""ACLs, SCRAM credentials and quota entities as values.

Numbers are Kafka's where Kafka defines them (KIP-140, KIP-290, KIP-554). `kafscale.security`
evaluates them, `metadata.access.keys` defines their keys.
"""

import enum
from typing import Final

import msgspec

ANY_HOST: Final = "*"
ANY_NAME: Final = "*"
ANY_PRINCIPAL: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""


class ResourceType(enum.IntEnum):
    """The type of a resource; 0 and 1 occur in filters only."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(enum.IntEnum):
    """How the resource name of an ACL matches; values up to MATCH occur in filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(enum.IntEnum):
    """The operation of an ACL; 0 and 1 occur in filters only."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15
    ADMIN = 100
    """A role: it stands for several operations, as ALL does. So do the next two. They are not
    Kafka's, whose tools show them as UNKNOWN."""
    PRODUCER = 101
    CONSUMER = 102


ROLES: Final = {
    Operation.ADMIN: frozenset(
        {
            Operation.CREATE,
            Operation.DELETE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.ALTER_CONFIGS,
            Operation.DESCRIBE_CONFIGS,
        }
    ),
    Operation.PRODUCER: frozenset({Operation.WRITE, Operation.DESCRIBE}),
    Operation.CONSUMER: frozenset({Operation.READ, Operation.DESCRIBE}),
}
"""The operations of each role. An ACL with a role binds a principal to it."""


class Permission(enum.IntEnum):
    """The permission of an ACL; 0 and 1 occur in filters only."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class Acl(msgspec.Struct, frozen=True, order=True):
    """One access control entry: principal, host, operation, resource and permission."""

    resource_type: ResourceType
    pattern_type: PatternType
    resource_name: str
    principal: str
    host: str
    operation: Operation
    permission: Permission


class ScramMechanism(enum.IntEnum):
    """The SCRAM mechanisms, as numbered by AlterUserScramCredentials."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def label(self) -> str:
        """The SASL mechanism name."""
        return "SCRAM-" + self.name.replace("_", "-")

    @property
    def digest(self) -> str:
        """The name of the hash function in `hashlib`."""
        return self.name.replace("_", "").lower()


class ScramCredential(msgspec.Struct, frozen=True):
    """What a server stores to authenticate a user; the password cannot be derived from it."""

    user: str
    mechanism: ScramMechanism
    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


class QuotaEntity(msgspec.Struct, frozen=True, order=True):
    """The entity of a quota: a user, a client id, both, or an IP address.

    None means that the field is not part of the entity, "" is the default for all without a quota
    of their own.
    """

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None
