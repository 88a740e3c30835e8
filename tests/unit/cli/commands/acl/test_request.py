"""Translation of the options of `kafscale acl` to ACLs and filters."""

import pytest

from kafscale.admin.security.acls import is_supported, parse_operation
from kafscale.cli.commands.acl.request import AclRequest, PrincipalEntry, principal_entries
from kafscale.metadata.access.model import (
    ROLES,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from kafscale.security.acl.filter import AclFilter

ALICE = principal_entries(Permission.ALLOW, ["User:alice"])
EVE = principal_entries(Permission.DENY, ["User:eve"])
T, G, C, X = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)


def operations_of(request):
    return {(acl.resource_type, acl.resource_name, acl.operation) for acl in request.to_acls()}


def test_request_combines_principals_hosts_resources_and_operations():
    request = AclRequest(
        topics=["a", "b"],
        entries=principal_entries(Permission.ALLOW, ["User:x", "User:y"], ["10.0.0.1", "10.0.0.2"]),
        operations=[Operation.READ, Operation.WRITE],
    )
    acls = request.to_acls()
    assert len(set(acls)) == len(acls) == 2 * 2 * 2 * 2
    assert (
        Acl(T, PatternType.LITERAL, "b", "User:y", "10.0.0.2", Operation.WRITE, Permission.ALLOW)
        in acls
    )


def test_defaults_are_all_operations_and_any_host():
    (acl,) = AclRequest(topics=["a"], entries=EVE).to_acls()
    assert (acl.operation, acl.host, acl.permission) == (Operation.ALL, "*", Permission.DENY)


def test_producer_gets_the_acls_of_kafka_acls():
    request = AclRequest(topics=["a"], transactional_ids=["tx"], entries=ALICE, producer=True)
    assert operations_of(request) == {
        (T, "a", Operation.WRITE),
        (T, "a", Operation.DESCRIBE),
        (T, "a", Operation.CREATE),
        (X, "tx", Operation.WRITE),
        (X, "tx", Operation.DESCRIBE),
    }


def test_consumer_gets_the_acls_of_kafka_acls():
    of_consumer = {(T, "a", Operation.READ), (T, "a", Operation.DESCRIBE), (G, "g", Operation.READ)}
    both = {"topics": ["a"], "groups": ["g"], "entries": ALICE, "consumer": True}
    assert operations_of(AclRequest(**both)) == of_consumer
    acls = AclRequest(**both, producer=True).to_acls()
    assert len(acls) == 5
    assert {acl.operation for acl in acls if acl.resource_type is G} == {Operation.READ}


def test_cluster_resource_is_always_literal():
    request = AclRequest(cluster=True, topics=["a"], pattern=PatternType.PREFIXED, entries=ALICE)
    assert [(acl.resource_name, acl.pattern_type) for acl in request.to_acls()] == [
        ("a", PatternType.PREFIXED),
        ("kafka-cluster", PatternType.LITERAL),
    ]


@pytest.mark.parametrize("role", sorted(ROLES))
def test_roles_apply_to_topics_and_groups(role):
    acls = AclRequest(topics=["a"], groups=["g"], entries=ALICE, operations=[role]).to_acls()
    assert {acl.operation for acl in acls} == {role}


def test_filters_match_anything_for_missing_options():
    assert AclRequest().to_filters() == [AclFilter()]
    assert AclRequest(entries=ALICE).to_filters() == [
        AclFilter(principal="User:alice", permission=Permission.ALLOW)
    ]
    assert AclRequest(topics=["a"]).to_filters() == [AclFilter(T, PatternType.LITERAL, "a")]
    assert AclRequest(
        topics=["a"], pattern=PatternType.MATCH, entries=[PrincipalEntry("User:x")]
    ).to_filters() == [AclFilter(T, PatternType.MATCH, "a", "User:x")]
    assert AclRequest(operations=[Operation.READ]).to_filters() == [
        AclFilter(operation=Operation.READ)
    ]


def test_filters_match_acls_of_the_same_options():
    options = {"topics": ["a"], "groups": ["g"], "entries": ALICE, "consumer": True}
    filters = AclRequest(**options).to_filters()
    for acl in AclRequest(**options).to_acls():
        assert any(each.matches(acl) for each in filters)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"topics": ["a"]}, "name a principal"),
        ({"entries": ALICE}, "name a resource"),
        ({"topics": ["a"], "entries": ALICE, "consumer": True}, "--topic and a --group"),
        ({"groups": ["a"], "entries": ALICE, "producer": True}, "--topic or a --transactional-id"),
        ({"topics": ["a"], "entries": EVE, "producer": True}, "leave out"),
        (
            {"topics": ["a"], "entries": ALICE, "producer": True, "operations": [Operation.READ]},
            "leave out",
        ),
        (
            {"groups": ["a"], "entries": ALICE, "operations": [Operation.WRITE]},
            "a Group does not support the operation Write",
        ),
    ],
)
def test_invalid_requests_are_rejected(options, problem):
    with pytest.raises(ValueError, match=problem):
        AclRequest(**options).to_acls()


@pytest.mark.parametrize("principal", ["alice", "User:", "Robot:alice", ":alice", ""])
def test_invalid_principals_are_rejected(principal):
    with pytest.raises(ValueError, match="such as User:alice"):
        principal_entries(Permission.ALLOW, [principal])


def test_host_needs_a_principal():
    with pytest.raises(ValueError, match="a host needs a principal"):
        principal_entries(Permission.ALLOW, [], ["10.0.0.1"])


@pytest.mark.parametrize("text", ["DescribeConfigs", "describe_configs", "DESCRIBE-CONFIGS"])
def test_operation_names_ignore_case_and_separators(text):
    assert parse_operation(text) is Operation.DESCRIBE_CONFIGS


@pytest.mark.parametrize("text", ["", "Any", "Unknown", "Producer", "Raed"])
def test_unknown_operation_lists_all_operations(text):
    with pytest.raises(ValueError, match="the operations are All, Read, Write"):
        parse_operation(text)


def test_all_is_supported_by_every_resource_type():
    kinds = [T, G, C, X, ResourceType.USER]
    assert all(is_supported(kind, Operation.ALL) for kind in kinds)
    assert not any(is_supported(kind, Operation.READ) for kind in [C, X, ResourceType.USER])
