"""DescribeAcls: the ACLs that match a filter, by resource."""

import pytest

from kafscale.metadata.access.model import Acl, Operation, PatternType, Permission, ResourceType
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_acls import (
    DESCRIBE_ACLS,
    DescribeAclsRequest,
    DescribedAcl,
    DescribedResource,
)
from unit.broker.handlers.acl_config import ACLS_ENABLED, ALICE, ROOT, on_cluster
from unit.broker.in_memory_broker import run_with_broker

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED, ANY = PatternType.LITERAL, PatternType.PREFIXED, PatternType.ANY
READ, WRITE, ALLOW, DENY = Operation.READ, Operation.WRITE, Permission.ALLOW, Permission.DENY
EVERYTHING = {
    "resource_type": ResourceType.ANY,
    "resource_name": None,
    "pattern_type": ANY,
    "principal": None,
    "host": None,
    "operation": Operation.ANY,
    "permission_type": Permission.ANY,
}
RULES = [
    Acl(TOPIC, LITERAL, "orders", "User:alice", "*", READ, ALLOW),
    Acl(TOPIC, LITERAL, "orders", "User:bob", "10.0.0.1", WRITE, DENY),
    Acl(TOPIC, PREFIXED, "ord", "User:alice", "*", Operation.PRODUCER, ALLOW),
    Acl(GROUP, LITERAL, "*", "Group:analysts", "*", READ, ALLOW),
]


async def describe(broker, version=DESCRIBE_ACLS.version_max, client=ROOT, **desired):
    request = DescribeAclsRequest(**EVERYTHING | desired)
    return await broker.ask(DESCRIBE_ACLS, request, version, client=client)


def rules(response):
    """The ACLs of a response."""
    assert response.error_code == ErrorCode.NONE
    return [
        Acl(
            each.resource_type,
            each.pattern_type,
            each.resource_name,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for each in response.resources
        for acl in each.acls
    ]


@pytest.mark.parametrize("version", [each for each in DESCRIBE_ACLS.versions if each >= 1])
def test_all_acls_are_listed_by_resource(version):
    async def body(broker):
        await broker.services.access_store.add_acls(RULES)
        response = await describe(broker, version)
        assert (response.error_code, response.error_message) == (0, None)
        assert response.resources == [
            DescribedResource(
                TOPIC,
                "orders",
                LITERAL,
                [
                    DescribedAcl("User:alice", "*", READ, ALLOW),
                    DescribedAcl("User:bob", "10.0.0.1", WRITE, DENY),
                ],
            ),
            DescribedResource(
                TOPIC, "ord", PREFIXED, [DescribedAcl("User:alice", "*", Operation.PRODUCER, ALLOW)]
            ),
            DescribedResource(
                GROUP, "*", LITERAL, [DescribedAcl("Group:analysts", "*", READ, ALLOW)]
            ),
        ]

    run_with_broker(body, config=ACLS_ENABLED)


def test_v0_lists_literal_patterns_only():
    async def body(broker):
        await broker.services.access_store.add_acls(RULES)
        expected = [rule for rule in RULES if rule.pattern_type is LITERAL]
        assert rules(await describe(broker, version=0)) == expected

    run_with_broker(body, config=ACLS_ENABLED)


@pytest.mark.parametrize(
    ("expected", "result"),
    [
        ({"resource_type": GROUP}, [3]),
        ({"principal": "User:alice"}, [0, 2]),
        ({"host": "10.0.0.1"}, [1]),
        ({"operation": WRITE}, [1]),
        ({"operation": Operation.PRODUCER}, [2]),
        ({"permission_type": ALLOW}, [0, 2, 3]),
        ({"resource_name": "orders"}, [0, 1]),
        ({"pattern_type": PREFIXED}, [2]),
        ({"pattern_type": PatternType.MATCH, "resource_name": "orders"}, [0, 1, 2, 3]),
        ({"principal": "User:unknown"}, []),
    ],
    ids=str,
)
def test_filter_selects_acls(expected, result):
    async def body(broker):
        await broker.services.access_store.add_acls(RULES)
        assert rules(await describe(broker, **expected)) == [RULES[index] for index in result]

    run_with_broker(body, config=ACLS_ENABLED)


@pytest.mark.parametrize(
    "wrong",
    [{"resource_type": 0}, {"pattern_type": 9}, {"operation": 99}, {"permission_type": 0}],
    ids=str,
)
def test_invalid_filter_is_refused(wrong):
    async def body(broker):
        response = await describe(broker, **wrong)
        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert response.error_message

    run_with_broker(body, config=ACLS_ENABLED)


@pytest.mark.parametrize("version", DESCRIBE_ACLS.versions)
def test_describe_acls_requires_describe_on_the_cluster(version):
    async def body(broker):
        await broker.services.access_store.add_acls(RULES)
        response = await describe(broker, version, client=ALICE)
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert response.resources == []
        await broker.services.access_store.add_acls([on_cluster(Operation.DESCRIBE)])
        assert rules(await describe(broker, version, client=ALICE))

    run_with_broker(body, config=ACLS_ENABLED)


@pytest.mark.parametrize("version", DESCRIBE_ACLS.versions)
def test_describe_acls_is_refused_without_authorization(version):
    async def body(broker):
        response = await describe(broker, version)
        assert response.error_code == ErrorCode.SECURITY_DISABLED

    run_with_broker(body)
