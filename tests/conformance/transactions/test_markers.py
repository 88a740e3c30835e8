"""WriteTxnMarkers by an administrator, who ends a transaction that no coordinator knows."""

from collections.abc import Mapping, Sequence

import pytest

from conformance.transactions.client import error_codes
from conformance.transactions.observation import describe, ended, producers, read
from conformance.transactions.requests import (
    NONE,
    SECOND,
    Producer,
    add_partitions,
    end,
    produce,
    start,
    write,
)
from conformance.transactions.servers import START_S_MAX
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    MarkerToWrite,
    TopicToMark,
    WriteTxnMarkersRequest,
)

pytestmark = pytest.mark.timeout(START_S_MAX)

VERSIONS = list(WRITE_TXN_MARKERS.versions)


def mark(
    client,
    *producers: Producer,
    committed: bool = False,
    partitions: Mapping[str, Sequence[int]] | None = None,
    coordinator_epoch: int = 0,
) -> list[int]:
    partitions = {client.topic: [0]} if partitions is None else partitions
    topics = [TopicToMark(topic, list(indexes)) for topic, indexes in partitions.items()]
    markers = [
        MarkerToWrite(each.id, each.epoch, committed, topics, coordinator_epoch)
        for each in producers
    ]
    response = client.call(WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest(markers))
    return list(error_codes(response))


@pytest.mark.parametrize("committed", [True, False])
def test_open_transaction_is_ended(client, committed):
    """As `kafka-transactions.sh abort` does, with the epoch of the coordinator that it found."""
    producer = start(client)
    write(client, producer)
    assert mark(client, producer, committed=committed) == [NONE]
    describe(client)
    read(client)
    producers(client)
    # The producer knows nothing about it.
    produce(client, producer, sequence=1)
    read(client)
    ended(client, producer)
    read(client)


def test_marker_with_a_higher_epoch(client):
    producer = start(client)
    write(client, producer)
    assert mark(client, Producer(producer.id, producer.epoch + 1)) == [NONE]
    read(client)
    producers(client)
    produce(client, producer, sequence=1)
    end(client, producer)
    read(client)


def test_marker_with_a_lower_epoch(client):
    start(client)
    producer = start(client)
    write(client, producer)
    refused = mark(client, Producer(producer.id, producer.epoch - 1))
    assert refused == [ErrorCode.INVALID_PRODUCER_EPOCH]
    read(client)


def test_coordinator_epochs(client):
    producer = start(client)
    write(client, producer)
    assert mark(client, producer, coordinator_epoch=5) == [NONE]
    assert mark(client, producer, coordinator_epoch=4) == [ErrorCode.TRANSACTION_COORDINATOR_FENCED]
    mark(client, producer, coordinator_epoch=5)
    mark(client, producer, coordinator_epoch=6)
    mark(client, producer, coordinator_epoch=-1)
    producers(client)
    read(client)


def test_producers_without_a_transaction(client):
    producer = start(client)
    assert mark(client, producer) == [NONE]
    assert mark(client, Producer(987_654_321, 3)) == [NONE]
    mark(client, Producer(987_654_321, 3))
    mark(client, Producer(-1, -1))
    producers(client)
    read(client)
    write(client, producer)
    ended(client, producer)
    mark(client, producer)
    read(client)


def test_several_markers(client):
    other = f"{client.transactional_id}-other"
    producer, second = start(client), start(client, transactional_id=other)
    partitions = {client.topic: [0, 1]}
    for each, id_ in ((producer, client.transactional_id), (second, other)):
        added = add_partitions(client, each, partitions=partitions, transactional_id=id_)
        assert added == [NONE, NONE]
        for partition in range(2):
            produce(client, each, partition=partition, transactional_id=id_)
    mark(client, producer, second, partitions=partitions)
    for partition in range(2):
        read(client, partition=partition)
        producers(client, (partition,))


def test_unknown_partitions(client):
    producer = start(client)
    write(client, producer)
    mark(client, producer, partitions={client.topic: [0, 3, -1], "none": [0], "": [0]})
    mark(client, producer, partitions={})
    mark(client, producer, partitions={client.topic: []})
    mark(client)
    read(client)


def test_next_transaction_after_a_marker_of_an_administrator(client):
    producer = start(client)
    write(client, producer)
    mark(client, producer)
    end(client, producer, SECOND, committed=False)
    following = start(client)
    write(client, following)
    ended(client, following)
    read(client)
    producers(client)
