"""Who may do what, and how much of it: rules, credentials and quotas, as values.

Data only, with Kafka's numbers where Kafka has numbers (KIP-140, KIP-290, KIP-554). What the rules
mean is said in `kafscale.security`; under which keys they are kept, in `access_keys`.
"""

import enum
from typing import Final

import msgspec

ANY_HOST: Final = "*"
ANY_NAME: Final = "*"
ANY_PRINCIPAL: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"
"""The one name that a resource of the type CLUSTER has."""


class ResourceType(enum.IntEnum):
    """What a rule is about; 0 and 1 stand in filters only."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(enum.IntEnum):
    """How the name in a rule is to be read; up to MATCH they stand in filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(enum.IntEnum):
    """What a rule speaks of; 0 and 1 stand in filters only."""

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
    """A role: it stands for several operations, as ALL does. So are the next two; Kafka has no such
    numbers, and its tools show them as UNKNOWN."""
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
"""The operations that a role stands for. A rule with a role is the binding of a principal to it."""


class Permission(enum.IntEnum):
    """What a rule says; 0 and 1 stand in filters only."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class Acl(msgspec.Struct, frozen=True, order=True):
    """One rule: who may, or may not, do what to what, and from where."""

    resource_type: ResourceType
    pattern_type: PatternType
    resource_name: str
    principal: str
    host: str
    operation: Operation
    permission: Permission


class ScramMechanism(enum.IntEnum):
    """The kinds of SCRAM, as AlterUserScramCredentials numbers them."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def label(self) -> str:
        """The name that clients use."""
        return "SCRAM-" + self.name.replace("_", "-")

    @property
    def digest(self) -> str:
        """The name of the hash function, as `hashlib` knows it."""
        return self.name.replace("_", "").lower()


class ScramCredential(msgspec.Struct, frozen=True):
    """What a server needs to recognize a user: neither the password nor the salted one."""

    user: str
    mechanism: ScramMechanism
    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


class QuotaEntity(msgspec.Struct, frozen=True, order=True):
    """Whom a quota is for: users, client ids, both together, or addresses.

    None does not tell apart, "" is the default for all who have no quota of their own.
    """

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None
