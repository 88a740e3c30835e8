"""What rules decide: by examples, and by Kafka's law written down without any index."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.metadata.access.model import ROLES, Operation, PatternType, Permission, ResourceType
from kafscale.security.acl.acl_index import AclIndex
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


def allows(acls, operation=READ, name="orders", *, principals=ALICE, kind=TOPIC, host=HOST, **more):
    return AclIndex(acls).allows(principals, host, operation, kind, name, **more)


def speaks_of(rule, kind, name):
    if rule.resource_type is not kind:
        return False
    if rule.pattern_type is PatternType.PREFIXED:
        return name.startswith(rule.resource_name)
    return rule.resource_name in {name, "*"}


def covers(rule, operation):
    said = ROLES.get(rule.operation, {rule.operation})
    if rule.operation is Operation.ALL or operation in said:
        return True
    return rule.permission is Permission.ALLOW and bool(IMPLIED.get(operation, set()) & said)


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
    said = {rule.permission for rule in speaking if concerns(rule, **question)}
    if Permission.DENY in said:
        return False
    return Permission.ALLOW in said or (by_default and not speaking)


def any_by_the_book(acls, question):
    """Kafka's `authorizeByResourceType`, without a default."""
    said = [rule for rule in acls if concerns(rule, **question)]
    denials = [rule for rule in said if rule.permission is Permission.DENY]

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
    return any(rule.permission is Permission.ALLOW and not is_dominated(rule) for rule in said)


def test_what_no_rule_allows_is_denied():
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
def test_a_rule_may_speak_of_many(rule):
    assert allows([rule])


def test_a_group_of_somebody_may_be_named_in_a_rule():
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
def test_what_a_rule_denies_no_other_allows(rule):
    assert not allows([acl(), acl(Operation.ALL, "*", "User:*"), rule])
    assert allows([acl(name="*")], name="payments")


@pytest.mark.parametrize("operation", [READ, WRITE, Operation.DELETE, Operation.ALTER])
def test_who_may_do_something_may_describe_it_and_who_may_not_still_may(operation):
    assert allows([acl(operation)], DESCRIBE)
    assert not allows([acl(DESCRIBE)], operation)
    assert allows([acl(DESCRIBE), deny(operation)], DESCRIBE)


def test_who_may_alter_configs_may_describe_them():
    assert allows([acl(Operation.ALTER_CONFIGS)], Operation.DESCRIBE_CONFIGS)
    assert not allows([acl(Operation.ALTER_CONFIGS)], DESCRIBE)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_stands_for_its_operations(role):
    allowed = {each for each in OPERATIONS if allows([acl(role)], each) and each not in ROLES}
    assert allowed == ROLES[role]


def test_an_address_is_the_same_however_it_is_written():
    one = deny(host="0:0:0:0:0:0:0:1")
    assert not allows([acl(), one], host="::1")
    assert allows([acl(), one], host="::2")
    assert allows([acl(host="10.0.0.1")], host="::ffff:10.0.0.1")


def test_only_what_no_rule_speaks_of_is_allowed_by_default():
    somebody_else = [acl(principal="User:bob")]
    assert allows(somebody_else, name="payments", by_default=True)
    assert not allows(somebody_else, name="payments")
    assert not allows(somebody_else, by_default=True)
    assert not allows([prefixed(READ, "ord", "User:bob")], by_default=True)


@given(acls=SETS, name=st.sampled_from(ASKED_NAMES), question=QUESTIONS, by_default=st.booleans())
def test_decisions_are_kafkas(acls, name, question, by_default):
    decision = AclIndex(acls).allows(**question, name=name, by_default=by_default)
    assert decision == by_the_book(acls, question, name, by_default=by_default)


@given(acls=SETS, question=QUESTIONS)
def test_whether_anything_is_allowed_is_kafkas(acls, question):
    assert AclIndex(acls).allows_any(**question) == any_by_the_book(acls, question)


@given(acls=SETS, question=QUESTIONS, by_default=st.booleans())
def test_what_is_allowed_somewhere_is_allowed_at_all(acls, question, by_default):
    rules = AclIndex(acls)
    if any(
        rules.allows(**question, name=name, by_default=by_default)
        for name in ASKED_NAMES
        if name != "*"
    ):
        assert rules.allows_any(**question, by_default=by_default)


def test_by_default_something_is_allowed_unless_rules_speak_of_everything():
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
def test_rules_that_are_removed_leave_nothing(acls, gone, name, question, by_default):
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
