"""Effects of denied authorization: on the rest of a request, on sessions, and on the audit log."""

import asyncio

from structlog.testing import capture_logs

from doubles import virtual_time
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
from unit.broker.handlers.authorization_cases import (
    ACLS_ENABLED,
    ALICE,
    MISSING,
    TOPIC,
    acl,
    allow,
    client,
    prepare_topic,
)
from unit.broker.handlers.permission_cases_topics import fetch, produce
from unit.broker.in_memory_broker import run_with_broker
from unit.storage.engines import values_batch

HIDDEN = "payroll"
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def changes(lines):
    return [line for line in lines if line["event"] == "changed"]


def test_authorized_topics_are_served_beside_denied_ones():
    async def body(broker):
        here = await prepare_topic(broker)
        await broker.topic(HIDDEN)
        await allow(broker, acl(ResourceType.TOPIC, Operation.WRITE, TOPIC))
        mixed = produce(here, 12)
        mixed.topics += produce(here, 12, HIDDEN).topics
        response = await broker.ask(PRODUCE, mixed, 12, client=client())
        codes = {topic.name: topic.partitions[0].error_code for topic in response.topics}
        assert codes == {TOPIC: ErrorCode.NONE, HIDDEN: DENIED}
        await broker.services.storage.wal.flush()
        assert broker.log(TOPIC).high_watermark == 2
        assert broker.log(HIDDEN).high_watermark == 0

    run_with_broker(body, config=ACLS_ENABLED)


def test_denied_produce_without_acks_closes_the_connection():
    async def body(broker):
        here = await prepare_topic(broker)
        with capture_logs() as lines:
            request = produce(here, 9, acks=0)
            await broker.ask(PRODUCE, request, 9, client=client(), is_closed=True)
        assert broker.log(TOPIC).high_watermark == 1
        assert not [line for line in lines if line["log_level"] == "error"]

    run_with_broker(body, config=ACLS_ENABLED)


def test_fetch_session_checks_authorization_on_every_fetch():
    async def body(broker):
        here = await prepare_topic(broker)
        may_read = acl(ResourceType.TOPIC, Operation.READ, TOPIC)
        await allow(broker, may_read)
        begun = await broker.ask(FETCH, fetch(here, 12, session_epoch=0), 12, client=client())
        assert begun.topics[0].partitions[0].error_code == ErrorCode.NONE

        await broker.services.access_store.remove_acls([may_read])
        more = FetchRequest(session_id=begun.session_id, session_epoch=1)
        response = await broker.ask(FETCH, more, 12, client=client())
        assert response.topics[0].partitions[0].error_code == DENIED
        assert b"".join(response.topics[0].partitions[0].records) == b""

        # Another client cannot use the session either.
        await allow(broker, may_read)
        more.session_epoch = 2
        stolen = await broker.ask(FETCH, more, 12, client=client("User:mallory"))
        assert stolen.topics[0].partitions[0].error_code == DENIED

    run_with_broker(body, config=ACLS_ENABLED)


def test_unauthorized_topic_is_not_auto_created():
    async def body(broker):
        here = await prepare_topic(broker)
        await allow(broker, acl(ResourceType.TOPIC, Operation.WRITE))
        request = MetadataRequest(topics=[TopicToDescribe(name=MISSING)])
        await broker.ask(METADATA, request, client=client())
        await broker.ask(PRODUCE, produce(here, 12, MISSING), 12, client=client())
        assert MISSING not in broker.services.topic_store.topics

    run_with_broker(body, config=ACLS_ENABLED)


def test_each_denied_resource_is_audited_once():
    async def body(broker):
        here = await prepare_topic(broker)
        with capture_logs() as lines:
            await broker.ask(FETCH, fetch(here, 12), 12, client=client())
        [line] = [line for line in lines if line["event"] == "access denied"]
        assert line["principal"] == ALICE
        assert (line["api"], line["operation"]) == ("Fetch", "READ")
        assert (line["resource_type"], line["resource"]) == ("TOPIC", TOPIC)
        assert broker.services.metrics.access.denied == 1

    run_with_broker(body, config=ACLS_ENABLED)


def test_changes_are_audited_with_their_principal():
    async def body(broker):
        await allow(broker, acl(ResourceType.TOPIC, Operation.ALL))

        async def ask(api, request):
            await broker.ask(api, request, client=client())

        with capture_logs() as lines:
            topics = [TopicToCreate(TOPIC, 2, 1)]
            await ask(CREATE_TOPICS, CreateTopicsRequest(topics, validate_only=True))
            await ask(CREATE_TOPICS, CreateTopicsRequest(topics))
            config = ConfigToAlter("retention.ms", 0, "60000")
            resources = [ResourceToAlter(ConfigOwner.TOPIC, TOPIC, [config])]
            await ask(
                INCREMENTAL_ALTER_CONFIGS,
                IncrementalAlterConfigsRequest(resources, validate_only=True),
            )
            await ask(INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources))
            await ask(DELETE_TOPICS, DeleteTopicsRequest(topics=[TopicToDelete(name=TOPIC)]))
            await ask(DELETE_TOPICS, DeleteTopicsRequest(topics=[TopicToDelete(name=TOPIC)]))
        audited = [
            (line["change"], line.get("topic") or line["resource"]) for line in changes(lines)
        ]
        assert audited == [
            ("topic created", TOPIC),
            ("configs changed", TOPIC),
            ("topic deleted", TOPIC),
        ]
        assert {line["principal"] for line in changes(lines)} == {ALICE}

    run_with_broker(body, config=ACLS_ENABLED)


def test_permission_that_is_removed_meanwhile_ends_a_waiting_fetch():
    async def body(broker):
        here = await prepare_topic(broker)
        end = broker.log(TOPIC).high_watermark
        reading = acl(ResourceType.TOPIC, Operation.READ, TOPIC)
        await allow(broker, reading)
        request = fetch(here, 12)
        request.max_wait_ms, request.min_bytes = 3_600_000, 1
        request.topics[0].partitions[0].offset = end
        waiting = asyncio.create_task(broker.ask(FETCH, request, 12, client=client()))
        await asyncio.sleep(1)
        assert not waiting.done()
        await broker.services.access_store.remove_acls([reading])
        broker.log(TOPIC).append(values_batch([b"secret"]), virtual_time.clock_ms())
        await broker.services.storage.wal.flush()
        [topic] = (await waiting).topics
        [partition] = topic.partitions
        assert (partition.error_code, bytes(b"".join(partition.records or []))) == (DENIED, b"")

    run_with_broker(body, config=ACLS_ENABLED)
