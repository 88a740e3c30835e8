"""DeleteAcls: the ACLs that match filters are deleted."""

import pytest
from structlog.testing import capture_logs

from kafscale.metadata.access.model import Acl, Operation, PatternType, Permission, ResourceType
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.delete_acls import (
    DELETE_ACLS,
    AclFilter,
    DeleteAclsRequest,
    DeletedAcl,
)
from unit.broker.handlers.acl_config import (
    ACLS_ENABLED,
    ACLS_WITHOUT_ADMIN,
    ALICE,
    ROOT,
    on_cluster,
)
from unit.broker.in_memory_broker import run_with_broker

TOPIC, LITERAL, PREFIXED = ResourceType.TOPIC, PatternType.LITERAL, PatternType.PREFIXED
READ, WRITE, ALLOW = Operation.READ, Operation.WRITE, Permission.ALLOW
READS = Acl(TOPIC, LITERAL, "orders", "User:alice", "*", READ, ALLOW)
WRITES = Acl(TOPIC, LITERAL, "orders", "User:alice", "*", WRITE, ALLOW)
PREFIX = Acl(TOPIC, PREFIXED, "ord", "User:alice", "*", READ, ALLOW)
RULES = {READS, WRITES, PREFIX}

EXACT = AclFilter(TOPIC, "orders", LITERAL, "User:alice", "*", READ, ALLOW)


def everything(pattern_type=PatternType.ANY, operation=Operation.ANY):
    return AclFilter(ResourceType.ANY, None, pattern_type, None, None, operation, Permission.ANY)


async def delete(broker, *filters, version=DELETE_ACLS.version_max, client=ROOT):
    request = DeleteAclsRequest(filters=list(filters))
    return (await broker.ask(DELETE_ACLS, request, version, client=client)).filters


def codes(filters):
    return [ErrorCode(each.error_code) for each in filters]


@pytest.mark.parametrize("version", DELETE_ACLS.versions)
def test_matching_acls_are_deleted_and_returned(version):
    async def body(broker):
        rules = broker.services.access_store
        await rules.add_acls(RULES)
        [one] = await delete(broker, EXACT, version=version)
        assert (one.error_code, one.error_message) == (0, None)
        assert one.acls == [
            DeletedAcl(0, None, TOPIC, "orders", LITERAL, "User:alice", "*", READ, ALLOW)
        ]
        assert set(rules.acls) == {WRITES, PREFIX}
        [none] = await delete(broker, EXACT, version=version)
        assert (none.error_code, none.acls) == (0, [])

        # v0 has no prefixed patterns, so it cannot match them.
        [rest] = await delete(broker, everything(), version=version)
        assert len(rest.acls) == (1 if version == 0 else 2)
        assert set(rules.acls) == ({PREFIX} if version == 0 else set())

    run_with_broker(body, config=ACLS_ENABLED)


def test_deleted_acl_is_not_enforced():
    async def body(broker):
        await broker.services.access_store.add_acls([on_cluster(Operation.ALTER)])
        assert codes(await delete(broker, EXACT, client=ALICE)) == [ErrorCode.NONE]
        assert codes(await delete(broker, everything(), client=ALICE)) == [ErrorCode.NONE]
        assert (
            codes(await delete(broker, EXACT, EXACT, client=ALICE))
            == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
        )

    run_with_broker(body, config=ACLS_ENABLED)


def test_each_filter_succeeds_or_fails_on_its_own():
    async def body(broker):
        await broker.services.access_store.add_acls(RULES)
        responses = await delete(
            broker, everything(operation=0), everything(PREFIXED), everything(operation=READ)
        )
        assert codes(responses) == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE, ErrorCode.NONE]
        assert [len(each.acls) for each in responses] == [0, 1, 2]
        assert list(broker.services.access_store.acls) == [WRITES]

    run_with_broker(body, config=ACLS_ENABLED)


@pytest.mark.parametrize("version", DELETE_ACLS.versions)
def test_delete_acls_is_refused_without_authorization(version):
    async def body(broker):
        assert (
            codes(await delete(broker, EXACT, EXACT, version=version))
            == [ErrorCode.SECURITY_DISABLED] * 2
        )

    run_with_broker(body)


def test_delete_acls_is_refused_if_admin_is_disabled():
    async def body(broker):
        await broker.services.access_store.add_acls(RULES)
        assert codes(await delete(broker, EXACT)) == [ErrorCode.POLICY_VIOLATION]
        assert set(broker.services.access_store.acls) == RULES

    run_with_broker(body, config=ACLS_WITHOUT_ADMIN)


def test_deleted_acls_are_audited():
    async def body(broker):
        await broker.services.access_store.add_acls(RULES)
        with capture_logs() as events:
            await delete(broker, EXACT, everything(LITERAL, READ))
        [event] = [event for event in events if event["event"] == "changed"]
        assert (event["principal"], event["change"]) == ("User:root", "acl deleted")
        assert event["acl"] == "ALLOW User:alice from * to READ TOPIC LITERAL:orders"

    run_with_broker(body, config=ACLS_ENABLED)
