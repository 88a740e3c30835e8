"""What the options of `kafscale acl` mean together."""

import pytest

from kafscale.admin.security.acls import is_supported, parse_operation
from kafscale.cli.commands.acl.rules import Party, Wanted, parties
from kafscale.metadata.access.model import (
    ROLES,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from kafscale.security.acl.filter import AclFilter

ALICE = parties(Permission.ALLOW, ["User:alice"])
EVE = parties(Permission.DENY, ["User:eve"])
T, G, C, X = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)


def meant(wanted):
    return {(rule.resource_type, rule.resource_name, rule.operation) for rule in wanted.rules()}


def test_everybody_may_do_everything_that_is_named_to_everything_that_is_named():
    wanted = Wanted(
        topics=["a", "b"],
        parties=parties(Permission.ALLOW, ["User:x", "User:y"], ["10.0.0.1", "10.0.0.2"]),
        operations=[Operation.READ, Operation.WRITE],
    )
    rules = wanted.rules()
    assert len(set(rules)) == len(rules) == 2 * 2 * 2 * 2
    assert (
        Acl(T, PatternType.LITERAL, "b", "User:y", "10.0.0.2", Operation.WRITE, Permission.ALLOW)
        in rules
    )


def test_without_operations_all_are_meant_and_without_hosts_all_places():
    (rule,) = Wanted(topics=["a"], parties=EVE).rules()
    assert (rule.operation, rule.host, rule.permission) == (Operation.ALL, "*", Permission.DENY)


def test_a_producer_gets_what_kafka_gives_one():
    wanted = Wanted(topics=["a"], transactional_ids=["tx"], parties=ALICE, producer=True)
    assert meant(wanted) == {
        (T, "a", Operation.WRITE),
        (T, "a", Operation.DESCRIBE),
        (T, "a", Operation.CREATE),
        (X, "tx", Operation.WRITE),
        (X, "tx", Operation.DESCRIBE),
    }


def test_a_consumer_gets_what_kafka_gives_one_and_who_is_both_gets_both_once():
    of_consumer = {(T, "a", Operation.READ), (T, "a", Operation.DESCRIBE), (G, "g", Operation.READ)}
    both = {"topics": ["a"], "groups": ["g"], "parties": ALICE, "consumer": True}
    assert meant(Wanted(**both)) == of_consumer
    rules = Wanted(**both, producer=True).rules()
    assert len(rules) == 5
    assert {rule.operation for rule in rules if rule.resource_type is G} == {Operation.READ}


def test_the_cluster_has_its_one_name_whatever_the_pattern():
    wanted = Wanted(cluster=True, topics=["a"], pattern=PatternType.PREFIXED, parties=ALICE)
    assert [(rule.resource_name, rule.pattern_type) for rule in wanted.rules()] == [
        ("a", PatternType.PREFIXED),
        ("kafka-cluster", PatternType.LITERAL),
    ]


@pytest.mark.parametrize("role", sorted(ROLES))
def test_a_role_may_be_had_for_topics_and_groups(role):
    rules = Wanted(topics=["a"], groups=["g"], parties=ALICE, operations=[role]).rules()
    assert {rule.operation for rule in rules} == {role}


def test_filters_leave_open_what_is_not_said():
    assert Wanted().filters() == [AclFilter()]
    assert Wanted(parties=ALICE).filters() == [
        AclFilter(principal="User:alice", permission=Permission.ALLOW)
    ]
    assert Wanted(topics=["a"]).filters() == [AclFilter(T, PatternType.LITERAL, "a")]
    assert Wanted(topics=["a"], pattern=PatternType.MATCH, parties=[Party("User:x")]).filters() == [
        AclFilter(T, PatternType.MATCH, "a", "User:x")
    ]
    assert Wanted(operations=[Operation.READ]).filters() == [AclFilter(operation=Operation.READ)]


def test_what_was_added_is_found_by_the_same_options():
    options = {"topics": ["a"], "groups": ["g"], "parties": ALICE, "consumer": True}
    filters = Wanted(**options).filters()
    for rule in Wanted(**options).rules():
        assert any(each.matches(rule) for each in filters)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"topics": ["a"]}, "say who"),
        ({"parties": ALICE}, "say what it is about"),
        ({"topics": ["a"], "parties": ALICE, "consumer": True}, "--topic and a --group"),
        ({"groups": ["a"], "parties": ALICE, "producer": True}, "--topic, or a --transactional-id"),
        ({"topics": ["a"], "parties": EVE, "producer": True}, "leave out"),
        (
            {"topics": ["a"], "parties": ALICE, "producer": True, "operations": [Operation.READ]},
            "leave out",
        ),
        (
            {"groups": ["a"], "parties": ALICE, "operations": [Operation.WRITE]},
            "Write cannot be done to a Group",
        ),
    ],
)
def test_what_cannot_be_meant_is_told(options, problem):
    with pytest.raises(ValueError, match=problem):
        Wanted(**options).rules()


@pytest.mark.parametrize("principal", ["alice", "User:", "Robot:alice", ":alice", ""])
def test_who_is_no_principal_is_told(principal):
    with pytest.raises(ValueError, match="such as User:alice"):
        parties(Permission.ALLOW, [principal])


def test_a_host_goes_with_somebody():
    with pytest.raises(ValueError, match="goes with a principal"):
        parties(Permission.ALLOW, [], ["10.0.0.1"])


@pytest.mark.parametrize("text", ["DescribeConfigs", "describe_configs", "DESCRIBE-CONFIGS"])
def test_operations_may_be_written_as_people_like(text):
    assert parse_operation(text) is Operation.DESCRIBE_CONFIGS


@pytest.mark.parametrize("text", ["", "Any", "Unknown", "Producer", "Raed"])
def test_what_is_no_operation_is_told_with_those_that_are(text):
    with pytest.raises(ValueError, match="the operations are All, Read, Write"):
        parse_operation(text)


def test_everything_may_be_done_to_anything():
    kinds = [T, G, C, X, ResourceType.USER]
    assert all(is_supported(kind, Operation.ALL) for kind in kinds)
    assert not any(is_supported(kind, Operation.READ) for kind in [C, X, ResourceType.USER])
