"""DeleteAcls: the rules that match filters are removed, and not obeyed any more."""

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
from unit.broker.handlers.guarded import (
    ALICE,
    GUARDED,
    GUARDED_WITHOUT_ADMINISTRATION,
    ROOT,
    on_cluster,
)
from unit.broker.handlers.serving import serve

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
def test_what_a_filter_matches_is_removed_and_told(version):
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

        # Who knows of no prefixes cannot mean them.
        [rest] = await delete(broker, everything(), version=version)
        assert len(rest.acls) == (1 if version == 0 else 2)
        assert set(rules.acls) == ({PREFIX} if version == 0 else set())

    serve(body, config=GUARDED)


def test_a_rule_that_is_gone_is_not_obeyed():
    async def body(broker):
        await broker.services.access_store.add_acls([on_cluster(Operation.ALTER)])
        assert codes(await delete(broker, EXACT, client=ALICE)) == [ErrorCode.NONE]
        assert codes(await delete(broker, everything(), client=ALICE)) == [ErrorCode.NONE]
        assert (
            codes(await delete(broker, EXACT, EXACT, client=ALICE))
            == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
        )

    serve(body, config=GUARDED)


def test_each_filter_is_for_itself():
    async def body(broker):
        await broker.services.access_store.add_acls(RULES)
        answers = await delete(
            broker, everything(operation=0), everything(PREFIXED), everything(operation=READ)
        )
        assert codes(answers) == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE, ErrorCode.NONE]
        assert [len(each.acls) for each in answers] == [0, 1, 2]
        assert list(broker.services.access_store.acls) == [WRITES]

    serve(body, config=GUARDED)


@pytest.mark.parametrize("version", DELETE_ACLS.versions)
def test_without_authorization_there_are_no_rules(version):
    async def body(broker):
        assert (
            codes(await delete(broker, EXACT, EXACT, version=version))
            == [ErrorCode.SECURITY_DISABLED] * 2
        )

    serve(body)


def test_where_administration_is_not_for_clients_nothing_is_removed():
    async def body(broker):
        await broker.services.access_store.add_acls(RULES)
        assert codes(await delete(broker, EXACT)) == [ErrorCode.POLICY_VIOLATION]
        assert set(broker.services.access_store.acls) == RULES

    serve(body, config=GUARDED_WITHOUT_ADMINISTRATION)


def test_the_audit_log_says_who_removed_what():
    async def body(broker):
        await broker.services.access_store.add_acls(RULES)
        with capture_logs() as events:
            await delete(broker, EXACT, everything(LITERAL, READ))
        [event] = [event for event in events if event["event"] == "changed"]
        assert (event["principal"], event["change"]) == ("User:root", "acl deleted")
        assert event["acl"] == "ALLOW User:alice from * to READ TOPIC LITERAL:orders"

    serve(body, config=GUARDED)
