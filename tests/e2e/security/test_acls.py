"""ACLs with real clients: patterns, hosts, denials and principals."""

import json
from uuid import uuid4

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.fetch import FETCH, FetchRequest, PartitionToFetch, TopicToFetch
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, TopicToDescribe
from services.acls import Acls, acl_binding
from services.client_operations import OK, ClientOperations
from services.secured_broker import ADMIN
from services.secured_wire import SecuredWire
from services.waiting import wait_until
from services.wire import batch_of

pytestmark = pytest.mark.timeout(60)

DENIED = "TOPIC_AUTHORIZATION_FAILED"
OUTSIDER = "User:outsider"
THIS = "the topic of the test"
PROPAGATION_S_MAX = 5
"""It takes far less than a second on an idle machine."""


@pytest.fixture
def admin(secured):
    return AdminClient(secured.plain(ADMIN).librdkafka())


@pytest.fixture
def acls(admin):
    """The ACLs of the outsider, who has none before and after a test."""
    acls = Acls(admin)
    yield acls
    acls.delete_of(OUTSIDER, "User:*", "User:ANONYMOUS", "Group:staff", f"User:{ADMIN}")


@pytest.fixture
def outsider(secured):
    return ClientOperations(secured.plain("outsider"))


@pytest.fixture
def topic(admin):
    name = f"things-{uuid4()}"
    admin.create_topics([NewTopic(name, 1)])[name].result(timeout=15)
    return name


def with_topic(given, topic):
    return {name: topic if value == THIS else value for name, value in given.items()}


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        ({"topic": THIS}, OK),
        ({"topic": "*"}, OK),
        ({"topic": "things-", "prefixed": True}, OK),
        ({"topic": "things-"}, DENIED),
        ({"topic": "other-", "prefixed": True}, DENIED),
        ({"topic": THIS, "host": "127.0.0.1"}, OK),
        ({"topic": THIS, "host": "10.1.2.3"}, DENIED),
        ({"group": THIS}, DENIED),
        ({"group": "*"}, DENIED),
    ],
    ids=str,
)
def test_acl_applies_to_matching_resources_and_hosts(acls, outsider, topic, given, outcome):
    acls.add(acl_binding(OUTSIDER, "WRITE", **with_topic(given, topic)))
    assert outsider.produce(topic) == outcome


@pytest.mark.parametrize(
    ("denied", "outcome"),
    [
        ({"topic": THIS}, DENIED),
        ({"topic": "things-", "prefixed": True}, DENIED),
        ({"topic": "*"}, DENIED),
        ({"topic": THIS, "host": "127.0.0.1"}, DENIED),
        ({"topic": THIS, "host": "10.1.2.3"}, OK),
    ],
    ids=str,
)
def test_deny_overrides_allow(acls, outsider, topic, denied, outcome):
    acls.add(
        acl_binding(OUTSIDER, "ALL", topic=topic),
        acl_binding("User:*", "WRITE", topic="*"),
        acl_binding(OUTSIDER, "WRITE", denied=True, **with_topic(denied, topic)),
    )
    assert outsider.produce(topic) == outcome


def test_wildcard_principal_applies_to_all_users(acls, outsider, topic):
    acls.add(acl_binding("User:*", "WRITE", topic=topic))
    assert outsider.produce(topic) == OK


def test_acl_for_anonymous_applies_without_login(secured, acls, topic):
    anonymous = ClientOperations(secured.anonymous())
    assert anonymous.produce(topic) == DENIED
    acls.add(acl_binding("User:ANONYMOUS", "WRITE", topic=topic))
    assert anonymous.produce(topic) == OK


def test_acl_for_a_group_applies_to_tokens_with_the_group(secured, acls, topic):
    acls.add(acl_binding("Group:staff", "WRITE", topic=topic))
    assert ClientOperations(secured.token("outsider", groups=["guests"])).produce(topic) == DENIED
    assert ClientOperations(secured.token("outsider", groups=["staff"])).produce(topic) == OK


def test_super_user_cannot_be_denied(secured, acls, topic):
    acls.add(acl_binding(f"User:{ADMIN}", "ALL", topic=topic, denied=True))
    assert ClientOperations(secured.plain(ADMIN)).produce(topic) == OK


def test_changed_acls_apply_to_open_connections(secured, acls, topic):
    """With raw requests: librdkafka retries only now and then."""
    config = secured.plain("outsider")
    with SecuredWire(config) as wire:
        assert wire.log_in_with(config) == 0

        def produced():
            return wire.produce(topic, batch_of([b""])).error_code

        assert produced() == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        acls.add(acl_binding(OUTSIDER, "WRITE", topic=topic))
        wait_until(lambda: produced() == 0, "the ACL to apply", seconds_max=PROPAGATION_S_MAX)
        acls.delete_of(OUTSIDER)
        wait_until(produced, "its removal to apply", seconds_max=PROPAGATION_S_MAX)


def test_client_id_grants_no_access(secured, topic):
    for name in (ADMIN, f"User:{ADMIN}"):
        forger = ClientOperations(secured.plain("outsider").with_changes(client_id=name))
        assert not forger.lists_topic(topic)
        assert forger.delete_topic(topic) == DENIED


def test_replica_id_needs_cluster_permission(secured, acls, topic):
    acls.add(acl_binding(OUTSIDER, "READ", topic=topic))
    config = secured.plain("outsider")
    with SecuredWire(config) as wire:
        assert wire.log_in_with(config) == 0
        assert wire.fetch(topic).error_code == 0
        requested = [
            TopicToFetch(topic, partitions=[PartitionToFetch(index=0, offset=0, max_bytes=1)])
        ]
        response = wire.call(FETCH, 11, FetchRequest(replica_id=0, topics=requested))
        assert response.topics[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_metadata_hides_and_does_not_create_denied_topics(secured, admin, topic):
    missing, config = f"things-{uuid4()}", secured.plain("outsider")
    with SecuredWire(config) as wire:
        assert wire.log_in_with(config) == 0
        requested = MetadataRequest([TopicToDescribe(name=topic), TopicToDescribe(name=missing)])
        described = wire.call(METADATA, 9, requested).topics
    assert {each.error_code for each in described} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert [each.partitions for each in described] == [[], []]
    assert missing not in admin.list_topics(timeout=10).topics


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_regex_subscription_matches_visible_topics_only(secured, admin, acls, protocol):
    begin = f"things-{uuid4()}"
    seen, unseen = f"{begin}-seen", f"{begin}-unseen"
    for future in admin.create_topics([NewTopic(seen, 1), NewTopic(unseen, 1)]).values():
        future.result(timeout=15)
    acls.add(acl_binding(OUTSIDER, "READ", topic=seen), acl_binding(OUTSIDER, "READ", group=begin))
    settings = {"group.id": begin, "group.protocol": protocol}
    consumer = Consumer(secured.plain("outsider").librdkafka() | settings)
    try:
        consumer.subscribe([f"^{begin}.*"])

        def assigned():
            assert consumer.poll(0.05) is None
            return {each.topic for each in consumer.assignment()}

        wait_until(assigned, "an assignment")
        assert assigned() == {seen}
    finally:
        consumer.close()


def test_denials_and_changes_are_logged_with_principal_and_client(secured, acls, outsider, topic):
    since_bytes = secured.log.stat().st_size
    acls.add(acl_binding(OUTSIDER, "DESCRIBE", topic=topic))
    assert outsider.delete_topic(topic) == DENIED
    lines = [json.loads(line) for line in secured.logged(since_bytes).splitlines()]
    (change,) = [line for line in lines if line["event"] == "changed"]
    assert (change["principal"], change["api"]) == (f"User:{ADMIN}", "CreateAcls")
    assert OUTSIDER in json.dumps(change)
    (denial,) = [
        line for line in lines if line["event"] == "access denied" and line["api"] == "DeleteTopics"
    ]
    assert denial["principal"] == OUTSIDER
    assert denial["client"].startswith("127.0.0.1:")
    assert (denial["operation"], denial["resource"]) == ("DELETE", topic)
