"""Sample ACLs and Hypothesis strategies for them."""

from hypothesis import strategies as st

from kafscale.metadata.access.model import (
    ANY_HOST,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

OPERATIONS = [each for each in Operation if each not in {Operation.UNKNOWN, Operation.ANY}]
TYPES = [ResourceType.TOPIC, ResourceType.GROUP]
NAMES = ["o", "or", "orders", "orders.eu", "payments", "*"]
PRINCIPALS = ["User:alice", "User:bob", "User:*", "Group:analysts"]
HOSTS = [ANY_HOST, "10.0.0.1", "10.0.0.2"]

ACLS = st.builds(
    Acl,
    resource_type=st.sampled_from(TYPES),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    resource_name=st.sampled_from(NAMES),
    principal=st.sampled_from(PRINCIPALS),
    host=st.sampled_from(HOSTS),
    operation=st.sampled_from(OPERATIONS),
    permission=st.sampled_from([Permission.ALLOW, Permission.DENY]),
)
SETS = st.lists(ACLS, unique=True, max_size=12)


def acl(
    operation=Operation.READ,
    name="orders",
    principal="User:alice",
    *,
    kind=ResourceType.TOPIC,
    pattern=PatternType.LITERAL,
    host=ANY_HOST,
    permission=Permission.ALLOW,
) -> Acl:
    """A rule like most."""
    return Acl(kind, pattern, name, principal, host, operation, permission)


def deny(*arguments, **options) -> Acl:
    return acl(*arguments, permission=Permission.DENY, **options)


def prefixed(operation, name, *arguments, **options) -> Acl:
    return acl(operation, name, *arguments, pattern=PatternType.PREFIXED, **options)
