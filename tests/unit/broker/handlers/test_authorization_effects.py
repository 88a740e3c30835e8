"""What denials do and leave undone: to the rest of a request, to sessions, and to the audit log."""

from structlog.testing import capture_logs

from kafscale.broker.configs.resources import ResourceType as ConfigOwner
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreateTopicsRequest,
    TopicToCreate,
)
from kafscale.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    TopicToDelete,
)
from kafscale.protocol.messages.fetch import FETCH, FetchRequest
from kafscale.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    ConfigToAlter,
    IncrementalAlterConfigsRequest,
    ResourceToAlter,
)
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, TopicToDescribe
from kafscale.protocol.messages.produce import PRODUCE
from unit.broker.handlers.authorized import (
    ALICE,
    AUTHORIZED,
    MISSING,
    TOPIC,
    allow,
    client,
    rule,
    scene,
)
from unit.broker.handlers.needs_of_topics import fetch, produce
from unit.broker.handlers.serving import serve

HIDDEN = "payroll"
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def changes(lines):
    return [line for line in lines if line["event"] == "changed"]


def test_what_is_allowed_is_done_beside_what_is_not():
    async def body(broker):
        here = await scene(broker)
        await broker.topic(HIDDEN)
        await allow(broker, rule(ResourceType.TOPIC, Operation.WRITE, TOPIC))
        mixed = produce(here, 12)
        mixed.topics += produce(here, 12, HIDDEN).topics
        response = await broker.ask(PRODUCE, mixed, 12, client=client())
        codes = {topic.name: topic.partitions[0].error_code for topic in response.topics}
        assert codes == {TOPIC: ErrorCode.NONE, HIDDEN: DENIED}
        await broker.services.storage.wal.flush()
        assert broker.log(TOPIC).high_watermark == 2
        assert broker.log(HIDDEN).high_watermark == 0

    serve(body, config=AUTHORIZED)


def test_who_awaits_no_answer_is_hung_up_on():
    async def body(broker):
        here = await scene(broker)
        with capture_logs() as lines:
            request = produce(here, 9, acks=0)
            await broker.ask(PRODUCE, request, 9, client=client(), is_closed=True)
        assert broker.log(TOPIC).high_watermark == 1
        assert not [line for line in lines if line["log_level"] == "error"]

    serve(body, config=AUTHORIZED)


def test_a_session_does_not_outlive_a_permission():
    async def body(broker):
        here = await scene(broker)
        may_read = rule(ResourceType.TOPIC, Operation.READ, TOPIC)
        await allow(broker, may_read)
        begun = await broker.ask(FETCH, fetch(here, 12, session_epoch=0), 12, client=client())
        assert begun.topics[0].partitions[0].error_code == ErrorCode.NONE

        await broker.services.access_store.remove_acls([may_read])
        more = FetchRequest(session_id=begun.session_id, session_epoch=1)
        told = await broker.ask(FETCH, more, 12, client=client())
        assert told.topics[0].partitions[0].error_code == DENIED
        assert b"".join(told.topics[0].partitions[0].records) == b""

        # It is of no use to know the session of somebody else.
        await allow(broker, may_read)
        more.session_epoch = 2
        stolen = await broker.ask(FETCH, more, 12, client=client("User:mallory"))
        assert stolen.topics[0].partitions[0].error_code == DENIED

    serve(body, config=AUTHORIZED)


def test_a_topic_that_one_may_not_create_is_not_there_afterwards():
    async def body(broker):
        here = await scene(broker)
        await allow(broker, rule(ResourceType.TOPIC, Operation.WRITE))
        asked = MetadataRequest(topics=[TopicToDescribe(name=MISSING)])
        await broker.ask(METADATA, asked, client=client())
        await broker.ask(PRODUCE, produce(here, 12, MISSING), 12, client=client())
        assert MISSING not in broker.services.catalog.topics

    serve(body, config=AUTHORIZED)


def test_a_denial_is_told_once_for_each_thing_that_was_named():
    async def body(broker):
        here = await scene(broker)
        with capture_logs() as lines:
            await broker.ask(FETCH, fetch(here, 12), 12, client=client())
        [line] = [line for line in lines if line["event"] == "access denied"]
        assert line["principal"] == ALICE
        assert (line["api"], line["operation"]) == ("Fetch", "READ")
        assert (line["resource_type"], line["resource"]) == ("TOPIC", TOPIC)
        assert broker.services.metrics.access.denied == 1

    serve(body, config=AUTHORIZED)


def test_changes_are_told_with_who_made_them():
    async def body(broker):
        await allow(broker, rule(ResourceType.TOPIC, Operation.ALL))

        async def ask(api, request):
            await broker.ask(api, request, client=client())

        with capture_logs() as lines:
            topics = [TopicToCreate(TOPIC, 2, 1)]
            await ask(CREATE_TOPICS, CreateTopicsRequest(topics, validate_only=True))
            await ask(CREATE_TOPICS, CreateTopicsRequest(topics))
            config = ConfigToAlter("retention.ms", 0, "60000")
            resources = [ResourceToAlter(ConfigOwner.TOPIC, TOPIC, [config])]
            await ask(INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources))
            await ask(DELETE_TOPICS, DeleteTopicsRequest(topics=[TopicToDelete(name=TOPIC)]))
            await ask(DELETE_TOPICS, DeleteTopicsRequest(topics=[TopicToDelete(name=TOPIC)]))
        told = [(line["change"], line.get("topic") or line["resource"]) for line in changes(lines)]
        assert told == [
            ("topic created", TOPIC),
            ("configs changed", TOPIC),
            ("topic deleted", TOPIC),
        ]
        assert {line["principal"] for line in changes(lines)} == {ALICE}

    serve(body, config=AUTHORIZED)
