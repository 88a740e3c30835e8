"""Requests about ACLs, quotas and SCRAM credentials that fail: error codes and messages."""

import pytest

from conformance.administration.conftest import START_S_MAX
from kafscale.protocol.messages import alter_client_quotas, describe_client_quotas
from kafscale.protocol.messages.alter_client_quotas import (
    ALTER_CLIENT_QUOTAS,
    AlterClientQuotasRequest,
    EntityPart,
    QuotaChange,
)
from kafscale.protocol.messages.alter_user_scram_credentials import (
    ALTER_USER_SCRAM_CREDENTIALS,
    AlterUserScramCredentialsRequest,
    CredentialToDelete,
    CredentialToSet,
)
from kafscale.protocol.messages.create_acls import CREATE_ACLS, AclToCreate, CreateAclsRequest
from kafscale.protocol.messages.delete_acls import DELETE_ACLS, AclFilter, DeleteAclsRequest
from kafscale.protocol.messages.describe_client_quotas import (
    DESCRIBE_CLIENT_QUOTAS,
    DescribeClientQuotasRequest,
)
from kafscale.protocol.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    DescribeUserScramCredentialsRequest,
    UserToDescribe,
)

pytestmark = pytest.mark.timeout(START_S_MAX)

TOPIC, CLUSTER, UNKNOWN = 2, 4, 99
LITERAL, ANY, READ, ALLOW = 3, 1, 3, 3
ACL = {
    "resource_type": TOPIC,
    "resource_name": "orders",
    "pattern_type": LITERAL,
    "principal": "User:alice",
    "host": "*",
    "operation": READ,
    "permission_type": ALLOW,
}
ALICE = [("user", "alice")]


@pytest.mark.parametrize(
    "change",
    [
        {"resource_name": ""},
        {"resource_type": CLUSTER},
        {"resource_type": UNKNOWN},
        {"pattern_type": UNKNOWN},
        {"operation": UNKNOWN},
        {"permission_type": UNKNOWN},
        {"principal": "alice"},
        {"principal": ""},
    ],
    ids=str,
)
def test_create_acls(both, change):
    response = both.call(CREATE_ACLS, 3, CreateAclsRequest([AclToCreate(**ACL | change)]))
    assert response.acls[0].error_code


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"resource_type": UNKNOWN},
        {"pattern_type": UNKNOWN},
        {"operation": UNKNOWN},
        {"permission_type": UNKNOWN},
        {"resource_name": ""},
        {"principal": "alice"},
    ],
    ids=str,
)
def test_delete_acls(both, change):
    both.call(DELETE_ACLS, 3, DeleteAclsRequest([AclFilter(**ACL | change)]))


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        ([], "producer_byte_rate", 1.0),
        ([("planet", "mars")], "producer_byte_rate", 1.0),
        ([("", "mars")], "producer_byte_rate", 1.0),
        ([("user", "")], "producer_byte_rate", 1.0),
        ([("user", "alice"), ("ip", "10.0.0.1")], "producer_byte_rate", 1.0),
        (ALICE, "unknown", 1.0),
        ([("ip", "10.0.0.1")], "producer_byte_rate", 1.0),
        *((ALICE, "producer_byte_rate", value) for value in (0.0, -1.0, 1.5, 1e30)),
        *((ALICE, "request_percentage", value) for value in (0.0, -1.0, 1.5)),
        *((ALICE, "controller_mutation_rate", value) for value in (0.0, -1.0, 1.5)),
        *(([("ip", None)], "connection_creation_rate", value) for value in (0.0, 1.5, 1e30)),
    ],
)
def test_alter_client_quotas(both, entity, key, value):
    requested = alter_client_quotas.QuotaToAlter(
        [EntityPart(*part) for part in entity], [QuotaChange(key, value)]
    )
    both.call(ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([requested], validate_only=True))


@pytest.mark.parametrize(
    "filters",
    [
        [("planet", 0, "mars")],
        [("", 0, "mars")],
        [("user", 0, "a"), ("user", 0, "b")],
        [("user", 9, "a")],
        [("user", 0, None)],
        [("user", 1, "a")],
        [("user", 2, "a")],
        [("user", 2, None), ("ip", 2, None)],
    ],
)
def test_describe_client_quotas(both, filters):
    requested = [describe_client_quotas.EntityFilter(*each) for each in filters]
    response = both.call(DESCRIBE_CLIENT_QUOTAS, 1, DescribeClientQuotasRequest(requested))
    assert response.error_code


@pytest.mark.parametrize(
    "request_",
    [
        AlterUserScramCredentialsRequest(),
        *(
            AlterUserScramCredentialsRequest([CredentialToDelete(user, mechanism)])
            for user, mechanism in (("unknown", 1), ("unknown", 9), ("unknown", 0), ("", 1))
        ),
        *(
            AlterUserScramCredentialsRequest(
                [], [CredentialToSet(user, mechanism, iterations, b"salt", b"x" * 32)]
            )
            for user, mechanism, iterations in (
                ("alice", 1, 100),
                ("alice", 1, 100_000),
                ("alice", 9, 4096),
                ("", 1, 4096),
            )
        ),
    ],
)
def test_alter_scram_credentials(both, request_):
    both.call(ALTER_USER_SCRAM_CREDENTIALS, 0, request_)


def test_describe_scram_credentials(both):
    credential = CredentialToSet("carol", 1, 4096, b"salt", b"x" * 32)
    both.call(ALTER_USER_SCRAM_CREDENTIALS, 0, AlterUserScramCredentialsRequest([], [credential]))
    both.wait_until(
        lambda response: bool(response.users),
        DESCRIBE_USER_SCRAM_CREDENTIALS,
        0,
        DescribeUserScramCredentialsRequest(None),
    )
    for names in (None, [], ["carol"], ["carol", "carol"], ["carol", "unknown", ""], ["x", "x"]):
        users = names and [UserToDescribe(name) for name in names]
        both.call(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, DescribeUserScramCredentialsRequest(users))
