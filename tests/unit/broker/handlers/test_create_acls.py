"""CreateAcls: ACLs are added, and enforced at once."""

import pytest
from structlog.testing import capture_logs

from kafscale.metadata.access.model import Acl, Operation, PatternType, Permission, ResourceType
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.create_acls import CREATE_ACLS, AclToCreate, CreateAclsRequest
from unit.broker.handlers.acl_config import (
    ACLS_ENABLED,
    ACLS_WITHOUT_ADMIN,
    ALICE,
    ROOT,
    on_cluster,
)
from unit.broker.in_memory_broker import run_with_broker

TOPIC, CLUSTER = ResourceType.TOPIC, ResourceType.CLUSTER
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
READ, ALLOW = Operation.READ, Permission.ALLOW
ORDERS = AclToCreate(TOPIC, "orders", LITERAL, "User:alice", "*", READ, ALLOW)
RULE = Acl(TOPIC, LITERAL, "orders", "User:alice", "*", READ, ALLOW)


def written(**changes):
    return AclToCreate(
        **{name: getattr(ORDERS, name) for name in ORDERS.__struct_fields__} | changes
    )


async def create(broker, *acls, version=CREATE_ACLS.version_max, client=ROOT):
    request = CreateAclsRequest(acls=list(acls))
    response = await broker.ask(CREATE_ACLS, request, version, client=client)
    return [ErrorCode(acl.error_code) for acl in response.acls]


@pytest.mark.parametrize("version", CREATE_ACLS.versions)
def test_acls_are_added_and_enforced(version):
    async def body(broker):
        assert await create(broker, ORDERS, version=version) == [ErrorCode.NONE]
        assert list(broker.services.access_store.acls) == [RULE]
        assert await create(broker, ORDERS, version=version) == [ErrorCode.NONE]
        assert list(broker.services.access_store.acls) == [RULE]

        expected = written(
            resource_type=CLUSTER, resource_name="kafka-cluster", operation=Operation.ALTER
        )
        assert await create(broker, ORDERS, version=version, client=ALICE) == [
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        ]
        assert await create(broker, expected, version=version) == [ErrorCode.NONE]
        assert await create(broker, ORDERS, version=version, client=ALICE) == [ErrorCode.NONE]

    run_with_broker(body, config=ACLS_ENABLED)


@pytest.mark.parametrize("version", [each for each in CREATE_ACLS.versions if each >= 1])
def test_prefixed_patterns_are_accepted(version):
    async def body(broker):
        prefix = written(pattern_type=PREFIXED)
        assert await create(broker, prefix, version=version) == [ErrorCode.NONE]
        [result] = broker.services.access_store.acls
        assert result.pattern_type is PREFIXED

    run_with_broker(body, config=ACLS_ENABLED)


@pytest.mark.parametrize("role", [Operation.ADMIN, Operation.PRODUCER, Operation.CONSUMER])
def test_role_is_granted_like_an_operation(role):
    async def body(broker):
        assert await create(broker, written(operation=role)) == [ErrorCode.NONE]
        [result] = broker.services.access_store.acls
        assert result.operation is role

    run_with_broker(body, config=ACLS_ENABLED)


@pytest.mark.parametrize(
    "wrong",
    [
        {"resource_type": ResourceType.UNKNOWN},
        {"resource_type": ResourceType.ANY},
        {"resource_type": 99},
        {"pattern_type": PatternType.UNKNOWN},
        {"pattern_type": PatternType.ANY},
        {"pattern_type": PatternType.MATCH},
        {"operation": Operation.UNKNOWN},
        {"operation": Operation.ANY},
        {"operation": 99},
        {"permission_type": Permission.UNKNOWN},
        {"permission_type": Permission.ANY},
        {"permission_type": -1},
        {"resource_name": ""},
        {"resource_name": "x" * 5_000},
        {"resource_type": CLUSTER},
        {"principal": ""},
        {"principal": "alice"},
        {"principal": "Robot:alice"},
        {"principal": "User:"},
        {"host": ""},
    ],
    ids=str,
)
def test_invalid_acl_fails_on_its_own(wrong):
    async def body(broker):
        assert await create(broker, written(**wrong), ORDERS) == [
            ErrorCode.INVALID_REQUEST,
            ErrorCode.NONE,
        ]
        assert list(broker.services.access_store.acls) == [RULE]

    run_with_broker(body, config=ACLS_ENABLED)


@pytest.mark.parametrize("version", CREATE_ACLS.versions)
def test_create_acls_is_refused_without_authorization(version):
    async def body(broker):
        assert (
            await create(broker, ORDERS, ORDERS, version=version)
            == [ErrorCode.SECURITY_DISABLED] * 2
        )
        assert not broker.services.access_store.acls

    run_with_broker(body)


def test_create_acls_is_refused_if_admin_is_disabled():
    async def body(broker):
        assert await create(broker, ORDERS) == [ErrorCode.POLICY_VIOLATION]
        assert not broker.services.access_store.acls

    run_with_broker(body, config=ACLS_WITHOUT_ADMIN)


def test_create_acls_requires_alter_on_the_cluster():
    async def body(broker):
        await broker.services.access_store.add_acls([on_cluster(Operation.DESCRIBE)])
        assert await create(broker, ORDERS, client=ALICE) == [
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        ]

    run_with_broker(body, config=ACLS_ENABLED)


def test_created_acls_are_audited():
    async def body(broker):
        with capture_logs() as events:
            await create(broker, ORDERS, written(host=""))
        [event] = [event for event in events if event["event"] == "changed"]
        assert event["principal"] == "User:root"
        assert event["client"] == "10.0.0.1:50000"
        assert event["change"] == "acl created"
        assert event["acl"] == "ALLOW User:alice from * to READ TOPIC LITERAL:orders"

    run_with_broker(body, config=ACLS_ENABLED)
