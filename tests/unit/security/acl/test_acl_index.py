"""`AclIndex`: examples, and a comparison with Kafka's rules without an index."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.metadata.access.model import ROLES, Operation, PatternType, Permission, ResourceType
from kafscale.security.acl.acl_index import AclIndex, PatternIndex
from unit.security.acls import ACLS, HOSTS, NAMES, OPERATIONS, SETS, acl, deny, prefixed

READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
ALICE = ("User:alice", "User:*")
HOST = "10.0.0.1"

ASKED_NAMES = [*NAMES, "ordersx", "x"]
IMPLIED = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}
QUESTIONS = st.fixed_dictionaries(
    {
        "principals": st.sampled_from([ALICE, ("User:x", "User:*"), (*ALICE, "Group:analysts")]),
        "host": st.sampled_from(HOSTS[1:]),
        "operation": st.sampled_from(OPERATIONS),
        "resource_type": st.sampled_from([TOPIC, GROUP]),
    }
)

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


def allows(acls, operation=READ, name="orders", *, principals=ALICE, kind=TOPIC, host=HOST, **more):
    return AclIndex(acls).allows(principals, host, operation, kind, name, **more)


def speaks_of(rule, kind, name):
    if rule.resource_type is not kind:
        return False
    if rule.pattern_type is PatternType.PREFIXED:
        return name.startswith(rule.resource_name)
    return rule.resource_name in {name, "*"}


def covers(rule, operation):
    output = ROLES.get(rule.operation, {rule.operation})
    if rule.operation is Operation.ALL or operation in output:
        return True
    return rule.permission is Permission.ALLOW and bool(IMPLIED.get(operation, set()) & output)


def concerns(rule, principals, host, operation, resource_type):
    return (
        rule.resource_type is resource_type
        and rule.principal in principals
        and rule.host in {"*", host}
        and covers(rule, operation)
    )


def by_the_book(acls, question, name, *, by_default):
    """Kafka's `StandardAuthorizer`, read rule by rule."""
    speaking = [rule for rule in acls if speaks_of(rule, question["resource_type"], name)]
    output = {rule.permission for rule in speaking if concerns(rule, **question)}
    if Permission.DENY in output:
        return False
    return Permission.ALLOW in output or (by_default and not speaking)


def any_by_the_book(acls, question):
    """Kafka's `authorizeByResourceType`, without a default."""
    output = [rule for rule in acls if concerns(rule, **question)]
    denials = [rule for rule in output if rule.permission is Permission.DENY]

    def is_dominated(rule):
        if rule.pattern_type is PatternType.LITERAL and rule.resource_name == "*":
            return False
        return any(
            (denial.pattern_type, denial.resource_name) == (rule.pattern_type, rule.resource_name)
            or (
                denial.pattern_type is PatternType.PREFIXED
                and rule.resource_name.startswith(denial.resource_name)
            )
            for denial in denials
        )

    if any(
        denial.pattern_type is PatternType.LITERAL and denial.resource_name == "*"
        for denial in denials
    ):
        return False
    return any(rule.permission is Permission.ALLOW and not is_dominated(rule) for rule in output)


def test_default_is_deny():
    assert not allows([])
    assert not allows([acl()], WRITE)
    assert not allows([acl()], name="Orders")
    assert not allows([acl()], kind=GROUP)
    assert not allows([acl()], principals=("User:bob", "User:*"))
    assert allows([acl()])


@pytest.mark.parametrize(
    "rule",
    [
        acl(name="*"),
        acl(principal="User:*"),
        acl(Operation.ALL),
        acl(host=HOST),
        prefixed(READ, "ord"),
        prefixed(READ, "orders"),
    ],
    ids=str,
)
def test_wildcards_and_prefixes_match(rule):
    assert allows([rule])


def test_acl_may_name_a_group():
    assert allows([acl(principal="Group:analysts")], principals=(*ALICE, "Group:analysts"))
    assert not allows([acl(principal="Group:analysts")])


@pytest.mark.parametrize(
    "rule",
    [
        deny(),
        deny(name="*"),
        deny(Operation.ALL),
        deny(principal="User:*"),
        deny(host=HOST),
        deny(name="or", pattern=PatternType.PREFIXED),
        deny(Operation.CONSUMER),
    ],
    ids=str,
)
def test_deny_overrides_allow(rule):
    assert not allows([acl(), acl(Operation.ALL, "*", "User:*"), rule])
    assert allows([acl(name="*")], name="payments")


@pytest.mark.parametrize("operation", [READ, WRITE, Operation.DELETE, Operation.ALTER])
def test_operations_imply_describe_but_denials_do_not(operation):
    assert allows([acl(operation)], DESCRIBE)
    assert not allows([acl(DESCRIBE)], operation)
    assert allows([acl(DESCRIBE), deny(operation)], DESCRIBE)


def test_alter_configs_implies_describe_configs():
    assert allows([acl(Operation.ALTER_CONFIGS)], Operation.DESCRIBE_CONFIGS)
    assert not allows([acl(Operation.ALTER_CONFIGS)], DESCRIBE)


@pytest.mark.parametrize("role", ROLES)
def test_role_covers_its_operations(role):
    allowed = {each for each in OPERATIONS if allows([acl(role)], each) and each not in ROLES}
    assert allowed == ROLES[role]


def test_host_addresses_are_normalized():
    one = deny(host="0:0:0:0:0:0:0:1")
    assert not allows([acl(), one], host="::1")
    assert allows([acl(), one], host="::2")
    assert allows([acl(host="10.0.0.1")], host="::ffff:10.0.0.1")


def test_default_applies_to_resources_without_acls_only():
    of_another_user = [acl(principal="User:bob")]
    assert allows(of_another_user, name="payments", by_default=True)
    assert not allows(of_another_user, name="payments")
    assert not allows(of_another_user, by_default=True)
    assert not allows([prefixed(READ, "ord", "User:bob")], by_default=True)


@given(acls=SETS, name=st.sampled_from(ASKED_NAMES), question=QUESTIONS, by_default=st.booleans())
def test_decisions_equal_kafka_rules(acls, name, question, by_default):
    decision = AclIndex(acls).allows(**question, name=name, by_default=by_default)
    assert decision == by_the_book(acls, question, name, by_default=by_default)


@given(acls=SETS, question=QUESTIONS)
def test_allows_any_equals_kafka_rules(acls, question):
    assert AclIndex(acls).allows_any(**question) == any_by_the_book(acls, question)


@given(acls=SETS, question=QUESTIONS, by_default=st.booleans())
def test_allowed_resource_implies_allows_any(acls, question, by_default):
    rules = AclIndex(acls)
    if any(
        rules.allows(**question, name=name, by_default=by_default)
        for name in ASKED_NAMES
        if name != "*"
    ):
        assert rules.allows_any(**question, by_default=by_default)


def test_allows_any_with_default_unless_a_wildcard_acl_exists():
    def allows_any(*acls):
        return AclIndex(acls).allows_any(ALICE, HOST, WRITE, TOPIC, by_default=True)

    assert allows_any()
    assert allows_any(deny(WRITE))
    assert not allows_any(acl(READ, "*", "User:bob"))


@given(
    acls=SETS,
    gone=st.sets(ACLS, max_size=6),
    name=st.sampled_from(ASKED_NAMES),
    question=QUESTIONS,
    by_default=st.booleans(),
)
def test_removed_acls_leave_no_entries(acls, gone, name, question, by_default):
    changed = AclIndex([*gone, *(each for each in acls if each not in gone)])
    for each in gone:
        changed.remove(each)
    never = AclIndex(each for each in acls if each not in gone)
    assert changed.allows(**question, name=name, by_default=by_default) == never.allows(
        **question, name=name, by_default=by_default
    )
    assert changed.allows_any(**question, by_default=by_default) == never.allows_any(
        **question, by_default=by_default
    )


def index_of(*patterns):
    result = PatternIndex()
    for kind, name in patterns:
        result.put(kind, name, (kind, name))
    return result


def test_name_matches_literal_wildcard_and_prefixes():
    patterns = index_of(
        (LITERAL, "ab"),
        (LITERAL, "*"),
        (LITERAL, "a"),
        (PREFIXED, "a"),
        (PREFIXED, "ab"),
        (PREFIXED, "abc"),
        (PREFIXED, "b"),
    )
    assert set(patterns.matching("ab")) == {
        (LITERAL, "ab"),
        (LITERAL, "*"),
        (PREFIXED, "a"),
        (PREFIXED, "ab"),
    }
    assert list(patterns.matching("c")) == [(LITERAL, "*")]
    assert len(list(patterns.values())) == 7


def test_prefix_star_is_no_wildcard():
    assert list(index_of((LITERAL, "*")).matching("*")) == [(LITERAL, "*")]
    assert list(index_of((PREFIXED, "*")).matching("a")) == []
    assert list(index_of((PREFIXED, "*")).matching("*a")) == [(PREFIXED, "*")]


def test_dropped_pattern_does_not_match():
    patterns = index_of((LITERAL, "a"), (PREFIXED, "a"), (PREFIXED, "b"))
    patterns.put(PREFIXED, "a", "again")
    patterns.drop(PREFIXED, "a")
    assert list(patterns.matching("a")) == [(LITERAL, "a")]
    assert list(patterns.matching("b")) == [(PREFIXED, "b")]
    assert patterns.get(PREFIXED, "a") is None
    patterns.drop(LITERAL, "a")
    assert patterns
    patterns.drop(PREFIXED, "b")
    assert not patterns
