"""Transactions over the API: list and abort them, and the producers of a topic."""

from urllib.parse import quote
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException, Producer

from services.waiting import wait_until

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def transactional_id() -> str:
    """A unique id with characters that need escaping in paths."""
    return f"billing/{uuid4()} & söhne?"


@pytest.fixture
def producer(console_client, broker, topic, transactional_id) -> Producer:
    """A producer whose transaction has a record in each partition of the topic."""
    console_client.post("/topics", {"name": topic, "partitionCount": 2})
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": transactional_id})
    producer.init_transactions(20)
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce(topic, "value", partition=partition)
    assert producer.flush(20) == 0
    return producer


def test_open_transactions_are_listed_and_aborted(
    console_client, topic, transactional_id, producer
):
    (row,) = listed(console_client, search=transactional_id.upper(), state="Ongoing")
    assert row["transactionalId"] == transactional_id
    assert row["topics"] == [{"topic": topic, "partitions": [0, 1]}]
    assert row["timeoutMs"] == 60_000
    assert row["startedMs"] is not None
    writers = console_client.get(f"/topics/{topic}/producers")
    assert [(each["partition"], each["transactionStartOffset"]) for each in writers] == [
        (0, 0),
        (1, 0),
    ]
    assert {each["producerId"] for each in writers} == {row["producerId"]}
    assert console_client.get("/hanging-transactions") == []

    path = f"/transactions/{quote(transactional_id, safe='')}/abort"
    assert console_client.request("POST", path, {"confirm": "billing"}).status == 400
    console_client.post(path, {"confirm": transactional_id})
    wait_until(
        lambda: listed(console_client, search=transactional_id)[0]["startedMs"] is None,
        "the end of the transaction",
    )
    with pytest.raises(KafkaException, match="FENCED"):
        producer.commit_transaction(20)


def test_committed_transactions_are_not_open(console_client, topic, transactional_id, producer):
    producer.commit_transaction(20)
    wait_until(
        lambda: listed(console_client, search=transactional_id, state="CompleteCommit"),
        "the end of the transaction",
    )
    assert listed(console_client, search=transactional_id, state="Ongoing") == []
    writers = console_client.get(f"/topics/{topic}/producers")
    assert {each["transactionStartOffset"] for each in writers} == {None}


def test_what_does_not_exist_is_not_aborted(console_client, topic):
    console_client.post("/topics", {"name": topic, "partitionCount": 1})
    absent = console_client.request("POST", "/transactions/absent/abort", {"confirm": "absent"})
    assert absent.status == 404
    nothing = {"topic": topic, "partition": 0, "startOffset": 7}
    assert console_client.request("POST", "/hanging-transactions/abort", nothing).status == 400
    assert console_client.request("GET", "/transactions?state=asleep").status == 400


def listed(console_client, **query):
    return console_client.get("/transactions", **query)["items"]
