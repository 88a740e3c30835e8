"""Topics that are created by naming them: who did it is told."""

import pytest
from structlog.testing import capture_logs

from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, TopicToDescribe
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProduceRequest,
    TopicToProduce,
)
from unit.broker.handlers.serving import serve


def named_by_metadata():
    return METADATA, MetadataRequest(topics=[TopicToDescribe(name="orders")]), 9


def named_by_produce():
    partition = PartitionToProduce(index=0, records=memoryview(b""))
    return (
        PRODUCE,
        ProduceRequest(
            acks=-1, timeout_ms=1000, topics=[TopicToProduce("orders", partitions=[partition])]
        ),
        9,
    )


@pytest.mark.parametrize("named", [named_by_metadata, named_by_produce])
def test_who_creates_a_topic_by_naming_it_is_told_once(named):
    async def body(broker):
        api, message, version = named()
        with capture_logs() as told:
            await broker.ask(api, message, version)
            await broker.ask(api, message, version)
        changes = [line for line in told if line["event"] == "changed"]
        assert [
            (line["principal"], line["api"], line["change"], line["topic"]) for line in changes
        ] == [("User:ANONYMOUS", api.name, "topic auto-created", "orders")]
        assert "orders" in broker.services.catalog.topics

    serve(body)
