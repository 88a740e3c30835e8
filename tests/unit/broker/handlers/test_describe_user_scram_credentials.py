"""DescribeUserScramCredentials: mechanisms and iterations, no secrets."""

import pytest

from kafscale.metadata.access.model import Operation, ScramCredential, ScramMechanism
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    DescribedCredential,
    DescribeUserScramCredentialsRequest,
    UserToDescribe,
)
from unit.broker.handlers.acl_config import ACLS_ENABLED, ALICE, ROOT, on_cluster
from unit.broker.in_memory_broker import CLIENT, run_with_broker

SHA_256, SHA_512 = ScramMechanism


async def describe(broker, *names, client=CLIENT):
    request = DescribeUserScramCredentialsRequest(users=[UserToDescribe(name) for name in names])
    return await broker.ask(DESCRIBE_USER_SCRAM_CREDENTIALS, request, client=client)


async def fill(broker):
    for user, mechanism, iterations in (
        ("bob", SHA_512, 8192),
        ("alice", SHA_512, 16_384),
        ("alice", SHA_256, 4096),
    ):
        await broker.services.access_store.set_credential(
            ScramCredential(user, mechanism, b"salt", iterations, b"stored", b"server")
        )


@pytest.mark.parametrize("users", [None, []])
def test_no_names_mean_all_users(users):
    async def body(broker):
        request = DescribeUserScramCredentialsRequest(users=users)
        empty = await broker.ask(DESCRIBE_USER_SCRAM_CREDENTIALS, request)
        assert (empty.error_code, empty.error_message, empty.users) == (0, None, [])
        await fill(broker)
        response = await broker.ask(DESCRIBE_USER_SCRAM_CREDENTIALS, request)
        assert [(user.name, user.error_code, user.credentials) for user in response.users] == [
            ("alice", 0, [DescribedCredential(1, 4096), DescribedCredential(2, 16_384)]),
            ("bob", 0, [DescribedCredential(2, 8192)]),
        ]

    run_with_broker(body)


def test_users_by_name():
    async def body(broker):
        await fill(broker)
        response = await describe(broker, "bob", "carol", "alice", "alice")
        assert response.error_code == ErrorCode.NONE
        bob, carol, alice = response.users
        assert (bob.name, bob.error_message, bob.credentials) == (
            "bob",
            None,
            [DescribedCredential(2, 8192)],
        )
        assert carol.error_code == ErrorCode.RESOURCE_NOT_FOUND
        assert carol.error_message == (
            "Attempt to describe a user credential that does not exist: carol"
        )
        assert (alice.error_code, alice.credentials) == (ErrorCode.DUPLICATE_RESOURCE, [])

    run_with_broker(body)


def test_describe_users_requires_describe_on_the_cluster():
    async def body(broker):
        await fill(broker)
        response = await describe(broker, "bob", client=ALICE)
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert response.users == []
        assert len((await describe(broker, client=ROOT)).users) == 2
        await broker.services.access_store.add_acls([on_cluster(Operation.DESCRIBE)])
        assert len((await describe(broker, client=ALICE)).users) == 2

    run_with_broker(body, config=ACLS_ENABLED)
