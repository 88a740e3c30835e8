"""The authorization matrix: users with ACLs or with roles attempt every operation."""

from collections.abc import Callable
from inspect import signature
from uuid import uuid4

import pytest
from confluent_kafka.admin import NewTopic

from kafscale.metadata.access.model import Operation, PatternType, Permission, ResourceType
from kafscale.protocol.messages.create_acls import CREATE_ACLS, AclToCreate, CreateAclsRequest
from services.acls import Acls, acl_binding
from services.client_operations import OK, ClientOperations
from services.secured_broker import ADMIN, SecuredBroker, password_of
from services.secured_wire import SecuredWire
from services.selection import long_except

pytestmark = pytest.mark.timeout(60)

USERS = ("producer", "consumer", "outsider", "operator")
TOPIC = "TOPIC_AUTHORIZATION_FAILED"
GROUP = "GROUP_AUTHORIZATION_FAILED"
CLUSTER = "CLUSTER_AUTHORIZATION_FAILED"
NO_ENTRY = "_NOENT"
"""The error of librdkafka for a topic that is not in its metadata."""
FATAL = "_FATAL"
"""The error of librdkafka for an unexpected denial."""

MATRIX = {
    # By user:             producer consumer outsider  operator
    "produce": (OK, TOPIC, TOPIC, TOPIC),
    "produce_idempotently": (OK, CLUSTER, TOPIC, CLUSTER),
    "read": (TOPIC, OK, TOPIC, TOPIC),
    "list_offsets": (OK, OK, NO_ENTRY, OK),
    "describe_topic": (OK, OK, TOPIC, OK),
    "lists_topic": (True, True, False, True),
    "create_topic": (TOPIC, TOPIC, TOPIC, OK),
    "add_partitions": (TOPIC, TOPIC, TOPIC, OK),
    "describe_configs": (TOPIC, TOPIC, TOPIC, OK),
    "alter_configs": (TOPIC, TOPIC, TOPIC, OK),
    "delete_records": (TOPIC, TOPIC, NO_ENTRY, OK),
    "delete_topic": (TOPIC, TOPIC, TOPIC, OK),
    "commit": (GROUP, OK, GROUP, GROUP),
    "consume_in_classic_group": (GROUP, OK, GROUP, GROUP),
    "consume_in_consumer_group": (GROUP, OK, GROUP, FATAL),
    "list_committed_offsets": (GROUP, OK, GROUP, OK),
    "describe_group": (GROUP, OK, GROUP, OK),
    "lists_group": (False, True, False, True),
    "delete_group": (GROUP, GROUP, GROUP, OK),
    "describe_cluster": (OK, OK, OK, OK),
    "describe_broker": (CLUSTER, CLUSTER, CLUSTER, CLUSTER),
    "describe_acls": (CLUSTER, CLUSTER, CLUSTER, CLUSTER),
    "create_acl": (CLUSTER, CLUSTER, CLUSTER, CLUSTER),
    "describe_users": (CLUSTER, CLUSTER, CLUSTER, CLUSTER),
    "add_user": (CLUSTER, CLUSTER, CLUSTER, CLUSTER),
}
ADMINISTRATION = ("CREATE", "DELETE", "ALTER", "DESCRIBE", "ALTER_CONFIGS", "DESCRIBE_CONFIGS")


def grant_acls(broker: SecuredBroker, prefix: str) -> None:
    Acls(ClientOperations(broker.plain(ADMIN)).admin).add(
        acl_binding("User:producer", "WRITE", topic=prefix, prefixed=True),
        acl_binding("User:consumer", "READ", topic=prefix, prefixed=True),
        acl_binding("User:consumer", "READ", group=prefix, prefixed=True),
        *(
            acl_binding("User:operator", each, topic=prefix, prefixed=True)
            for each in ADMINISTRATION
        ),
        *(
            acl_binding("User:operator", each, group=prefix, prefixed=True)
            for each in ADMINISTRATION[:4]
        ),
    )


def grant_roles(broker: SecuredBroker, prefix: str) -> None:
    """With raw requests: Kafka's clients have no names for roles."""
    topic, group = ResourceType.TOPIC, ResourceType.GROUP
    acls = [
        AclToCreate(kind, prefix, PatternType.PREFIXED, principal, "*", role, Permission.ALLOW)
        for principal, role, kind in [
            ("User:producer", Operation.PRODUCER, topic),
            ("User:consumer", Operation.CONSUMER, topic),
            ("User:consumer", Operation.CONSUMER, group),
            ("User:operator", Operation.ADMIN, topic),
            ("User:operator", Operation.ADMIN, group),
        ]
    ]
    with SecuredWire(broker.plain(ADMIN)) as wire:
        wire.try_log_in(ADMIN, password_of(ADMIN))
        created = wire.call(CREATE_ACLS, 3, CreateAclsRequest(acls)).acls
    assert [each.error_code for each in created] == [0] * len(acls)


@pytest.fixture(scope="module")
def users(_shared_secured) -> dict[str, ClientOperations]:
    return {user: ClientOperations(_shared_secured.plain(user)) for user in (*USERS, ADMIN)}


@pytest.fixture(scope="module", params=[grant_acls, grant_roles], ids=["acls", "roles"])
def prefix(request, _shared_secured) -> str:
    """The prefix of the topic and group names to which the users have access."""
    name = f"shop-{uuid4()}-"
    grant: Callable[[SecuredBroker, str], None] = request.param
    grant(_shared_secured, name)
    return name


@pytest.fixture
def create_topic_and_group(prefix, users) -> Callable[[bool], str]:
    """Create a topic with a record, and a group of the same name that has read it."""

    def make(has_group: bool) -> str:
        name, admin = f"{prefix}{uuid4()}", users[ADMIN]
        admin.admin.create_topics([NewTopic(name, 1)])[name].result(timeout=15)
        assert admin.produce(name) == OK
        if has_group:
            assert admin.commit(name, name) == OK
        return name

    return make


# The unit tests of handlers check every permission.
@pytest.mark.parametrize("attempt", long_except(MATRIX, list(MATRIX)[::5].__contains__))
@pytest.mark.usefixtures("secured")
def test_every_operation_is_allowed_or_denied_as_granted(users, create_topic_and_group, attempt):
    expected = dict(zip(USERS, MATRIX[attempt], strict=True))
    # A super user is not restricted by ACLs.
    expected[ADMIN] = attempt.startswith("lists_") or OK
    outcomes = {}
    for user in expected:
        trying = getattr(users[user], attempt)
        names = {
            parameter
            for parameter in signature(trying).parameters
            if parameter in {"topic", "group"}
        }
        name = create_topic_and_group(not attempt.startswith("consume_")) if names else ""
        outcomes[user] = trying(**dict.fromkeys(names, name))
    assert outcomes == expected
