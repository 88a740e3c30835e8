"""CreateAcls: rules are added, and obeyed at once."""

import pytest
from structlog.testing import capture_logs

from kafscale.metadata.access.model import Acl, Operation, PatternType, Permission, ResourceType
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.create_acls import CREATE_ACLS, AclToCreate, CreateAclsRequest
from unit.broker.handlers.guarded import (
    ALICE,
    GUARDED,
    GUARDED_WITHOUT_ADMINISTRATION,
    ROOT,
    on_cluster,
)
from unit.broker.handlers.serving import serve

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
def test_rules_are_added_and_obeyed(version):
    async def body(broker):
        assert await create(broker, ORDERS, version=version) == [ErrorCode.NONE]
        assert list(broker.services.access_store.acls) == [RULE]
        assert await create(broker, ORDERS, version=version) == [ErrorCode.NONE]
        assert list(broker.services.access_store.acls) == [RULE]

        wanted = written(
            resource_type=CLUSTER, resource_name="kafka-cluster", operation=Operation.ALTER
        )
        assert await create(broker, ORDERS, version=version, client=ALICE) == [
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        ]
        assert await create(broker, wanted, version=version) == [ErrorCode.NONE]
        assert await create(broker, ORDERS, version=version, client=ALICE) == [ErrorCode.NONE]

    serve(body, config=GUARDED)


@pytest.mark.parametrize("version", [each for each in CREATE_ACLS.versions if each >= 1])
def test_patterns_may_be_prefixes(version):
    async def body(broker):
        prefix = written(pattern_type=PREFIXED)
        assert await create(broker, prefix, version=version) == [ErrorCode.NONE]
        [found] = broker.services.access_store.acls
        assert found.pattern_type is PREFIXED

    serve(body, config=GUARDED)


@pytest.mark.parametrize("role", [Operation.ADMIN, Operation.PRODUCER, Operation.CONSUMER])
def test_a_role_is_bound_like_any_operation(role):
    async def body(broker):
        assert await create(broker, written(operation=role)) == [ErrorCode.NONE]
        [found] = broker.services.access_store.acls
        assert found.operation is role

    serve(body, config=GUARDED)


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
def test_a_rule_that_makes_no_sense_fails_alone(wrong):
    async def body(broker):
        assert await create(broker, written(**wrong), ORDERS) == [
            ErrorCode.INVALID_REQUEST,
            ErrorCode.NONE,
        ]
        assert list(broker.services.access_store.acls) == [RULE]

    serve(body, config=GUARDED)


@pytest.mark.parametrize("version", CREATE_ACLS.versions)
def test_without_authorization_there_are_no_rules(version):
    async def body(broker):
        assert (
            await create(broker, ORDERS, ORDERS, version=version)
            == [ErrorCode.SECURITY_DISABLED] * 2
        )
        assert not broker.services.access_store.acls

    serve(body)


def test_where_administration_is_not_for_clients_nothing_is_added():
    async def body(broker):
        assert await create(broker, ORDERS) == [ErrorCode.POLICY_VIOLATION]
        assert not broker.services.access_store.acls

    serve(body, config=GUARDED_WITHOUT_ADMINISTRATION)


def test_who_may_only_describe_the_cluster_may_not_add_rules():
    async def body(broker):
        await broker.services.access_store.add_acls([on_cluster(Operation.DESCRIBE)])
        assert await create(broker, ORDERS, client=ALICE) == [
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        ]

    serve(body, config=GUARDED)


def test_the_audit_log_says_who_added_what():
    async def body(broker):
        with capture_logs() as events:
            await create(broker, ORDERS, written(host=""))
        [event] = [event for event in events if event["event"] == "changed"]
        assert event["principal"] == "User:root"
        assert event["client"] == "10.0.0.1:50000"
        assert event["change"] == "acl created"
        assert event["acl"] == "ALLOW User:alice from * to READ TOPIC LITERAL:orders"

    serve(body, config=GUARDED)
