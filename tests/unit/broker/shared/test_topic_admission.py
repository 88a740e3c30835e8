"""Auto-created topics are audited."""

import pytest
from structlog.testing import capture_logs

from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, TopicToDescribe
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProduceRequest,
    TopicToProduce,
)
from unit.broker.in_memory_broker import run_with_broker


def metadata_request():
    return METADATA, MetadataRequest(topics=[TopicToDescribe(name="orders")]), 9


def produce_request():
    partition = PartitionToProduce(index=0, records=memoryview(b""))
    return (
        PRODUCE,
        ProduceRequest(
            acks=-1, timeout_ms=1000, topics=[TopicToProduce("orders", partitions=[partition])]
        ),
        9,
    )


@pytest.mark.parametrize("build", [metadata_request, produce_request])
def test_auto_created_topic_is_audited_once(build):
    async def body(broker):
        api, message, version = build()
        with capture_logs() as logs:
            await broker.ask(api, message, version)
            await broker.ask(api, message, version)
        changes = [line for line in logs if line["event"] == "changed"]
        assert [
            (line["principal"], line["api"], line["change"], line["topic"]) for line in changes
        ] == [("User:ANONYMOUS", api.name, "topic auto-created", "orders")]
        assert "orders" in broker.services.topic_store.topics

    run_with_broker(body)
