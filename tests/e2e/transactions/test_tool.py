"""`kafka-transactions.sh`: transactions are listed, described and aborted."""

import re

import pytest
from confluent_kafka import KafkaException, Producer

from e2e.transactions.numbered_records import create
from services import java
from services.committed_records import read_values

pytestmark = [
    pytest.mark.timeout(300),  # The first run downloads the tools.
    pytest.mark.skipif(not java.is_available(), reason="no Java or no Maven here"),
]

WAIT_S_MAX = 30


def rows(printed: str) -> list[dict[str, str]]:
    """The rows of a table that the tool prints."""
    lines = [re.split(r"\s*\t\s*|\s{2,}", line.strip()) for line in printed.splitlines() if line]
    header, *values = lines
    return [dict(zip(header, row, strict=False)) for row in values]


@pytest.mark.long
def test_open_transaction_is_found_and_aborted(start_server):
    server = start_server()
    create(server.address, "topic")

    def tool(*arguments: str) -> str:
        options = ("--bootstrap-server", server.address)
        return java.run("org.apache.kafka.tools.TransactionsCommand", *options, *arguments)

    settings = {"bootstrap.servers": server.address, "transactional.id": "open"}
    producer = Producer(settings)
    producer.init_transactions(WAIT_S_MAX)
    producer.begin_transaction()
    producer.produce("topic", "open", partition=0)
    assert producer.flush(WAIT_S_MAX) == 0
    plain = Producer({"bootstrap.servers": server.address})
    plain.produce("topic", "later", partition=0)
    assert plain.flush(WAIT_S_MAX) == 0

    (listed,) = rows(tool("list"))
    assert (listed["TransactionalId"], listed["TransactionState"]) == ("open", "Ongoing")
    (described,) = rows(tool("describe", "--transactional-id", "open"))
    assert described["TopicPartitions"] == "topic-0"
    assert described["ProducerId"] == listed["ProducerId"]
    place = ("--topic", "topic", "--partition", "0")
    (active, *_) = (
        row
        for row in rows(tool("describe-producers", *place))
        if row["ProducerId"] == listed["ProducerId"]
    )
    assert active["CurrentTransactionStartOffset"] == "0"
    assert rows(tool("find-hanging", "--topic", "topic")) == []

    assert read_values(server.address, "topic")[0] == []
    tool("abort", *place, "--start-offset", "0")
    assert read_values(server.address, "topic")[0] == ["later"]
    tool("forceTerminateTransaction", "--transactionalId", "open")
    with pytest.raises(KafkaException):
        producer.commit_transaction(WAIT_S_MAX)
    assert read_values(server.address, "topic")[0] == ["later"]
    assert rows(tool("list"))[0]["TransactionState"] in {"CompleteAbort", "Empty"}
