"""AddPartitionsToTxn: what clients send, up to version 3, and brokers, since version 4."""

import pytest

from conformance.transactions.observation import describe, ended, read, wait_for
from conformance.transactions.requests import (
    NONE,
    Producer,
    add_partitions,
    end,
    extend,
    extension,
    init,
    produce,
    start,
    write,
)
from conformance.transactions.servers import START_S_MAX
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN

pytestmark = pytest.mark.timeout(START_S_MAX)

CLIENT_VERSIONS = [version for version in ADD_PARTITIONS_TO_TXN.versions if version < 4]
BROKER_VERSIONS = [version for version in ADD_PARTITIONS_TO_TXN.versions if version >= 4]


@pytest.mark.parametrize("version", CLIENT_VERSIONS)
def test_add_partitions(client, version):
    producer = start(client)
    assert add_partitions(client, producer, version) == [NONE]
    describe(client)
    assert add_partitions(client, producer, version) == [NONE]
    add_partitions(client, producer, version, partitions={client.topic: [2, 0]})
    describe(client)
    add_partitions(client, producer, version, partitions={client.topic: []})
    add_partitions(client, producer, version, partitions={})
    describe(client)


@pytest.mark.parametrize("version", CLIENT_VERSIONS)
def test_no_partitions_in_a_new_transaction(client, version):
    producer = start(client)
    add_partitions(client, producer, version, partitions={})
    add_partitions(client, producer, version, partitions={client.topic: []})
    describe(client)


@pytest.mark.parametrize("version", CLIENT_VERSIONS)
def test_unknown_partitions_are_refused_together_with_the_others(client, version):
    producer = start(client)
    for partitions in [
        {"none": [0, 1]},
        {"none": [0], client.topic: [0, 1]},
        {client.topic: [0, 3, -1]},
        {"": [0], client.topic: [0]},
        {"__consumer_offsets": [0], client.topic: [0]},
        {"__transaction_state": [0], client.topic: [0]},
        {client.topic: [1, 1]},
    ]:
        add_partitions(client, producer, version, partitions=partitions)
        describe(client)
    mixed = add_partitions(client, producer, version, partitions={"none": [0], client.topic: [0]})
    assert sorted(mixed) == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    ]


@pytest.mark.parametrize("version", CLIENT_VERSIONS)
def test_producers_that_do_not_match(client, version):
    producer = start(client)
    wrong = [
        Producer(producer.id, producer.epoch + 1),
        Producer(producer.id, -1),
        Producer(987_654_321, producer.epoch),
        Producer(-1, -1),
    ]
    for is_open in (False, True):
        for each in wrong:
            add_partitions(client, each, version)
            add_partitions(client, each, version, partitions={client.topic: [0], "none": [0]})
        if not is_open:
            write(client, producer)
    add_partitions(client, producer, version, transactional_id="unknown")
    add_partitions(client, producer, version, transactional_id="")
    start(client)
    add_partitions(client, producer, version)
    describe(client)


@pytest.mark.parametrize("version", CLIENT_VERSIONS)
def test_next_transaction_after_each_outcome(client, version):
    producer = start(client)
    for committed in (True, False):
        write(client, producer, sequence=int(not committed))
        ended(client, producer, committed=committed)
        add_partitions(client, producer, version)
        describe(client)
    read(client)


@pytest.mark.parametrize("version", BROKER_VERSIONS)
def test_add_partitions_between_brokers(client, version):
    producer = start(client)
    assert extend(client, version, extension(client, producer)) == [NONE, NONE]
    describe(client)
    partitions = {client.topic: [0, 1, 7], "none": [0]}
    extend(client, version, extension(client, producer, partitions=partitions))
    describe(client)
    extend(client, version, extension(client, producer, partitions={}))


@pytest.mark.parametrize("version", BROKER_VERSIONS)
def test_several_transactions(client, version):
    first, other = client.transactional_id, f"{client.transactional_id}-b"
    producer = start(client)
    second = start(client, transactional_id=other)
    extend(
        client,
        version,
        extension(client, producer),
        extension(client, second, transactional_id=other, partitions={client.topic: [1]}),
        extension(client, second, transactional_id="unknown"),
    )
    extend(
        client,
        version,
        extension(client, second, transactional_id=first),
        extension(client, second, transactional_id=other, verify_only=True),
    )
    describe(client, first, other)


@pytest.mark.parametrize("version", BROKER_VERSIONS)
def test_verification_of_partitions(client, version):
    producer = start(client)
    partitions = {client.topic: [0, 1, 7], "none": [0]}

    def verify(epoch: int = 0, id_: int | None = None, transactional_id: str | None = None):
        extend(
            client,
            version,
            extension(
                client,
                Producer(producer.id if id_ is None else id_, producer.epoch + epoch),
                verify_only=True,
                partitions=partitions,
                transactional_id=transactional_id,
            ),
        )

    verify()
    write(client, producer)
    verify()
    verify(epoch=1)
    verify(epoch=-1)
    verify(id_=987_654_321)
    verify(transactional_id="unknown")
    verify(transactional_id="")
    ended(client, producer)
    verify()
    describe(client)


@pytest.mark.parametrize("version", BROKER_VERSIONS)
def test_producers_that_do_not_match_between_brokers(client, version):
    producer = start(client)
    for wrong in [
        Producer(producer.id, producer.epoch + 1),
        Producer(producer.id, producer.epoch - 1),
        Producer(987_654_321, producer.epoch),
    ]:
        for verify_only in (False, True):
            extend(client, version, extension(client, wrong, verify_only=verify_only))
    describe(client)


def test_partition_of_a_deleted_topic(client):
    """The marker cannot be written any more, and the transaction completes without it."""
    client.create(f"{client.topic}-gone", partitions=1)
    producer = start(client)
    partitions = {client.topic: [0], f"{client.topic}-gone": [0]}
    assert add_partitions(client, producer, partitions=partitions) == [NONE, NONE]
    assert produce(client, producer).error_code == NONE
    client.delete(f"{client.topic}-gone")
    assert end(client, producer).error_code == NONE
    wait_for(client, "CompleteCommit")
    read(client)


def test_partitions_of_a_transaction_without_records(client):
    """They get a marker all the same."""
    producer = start(client)
    partitions = {client.topic: [0, 1]}
    assert add_partitions(client, producer, partitions=partitions) == [NONE, NONE]
    assert produce(client, producer).error_code == NONE
    ended(client, producer)
    read(client)
    read(client, partition=1)
    add_partitions(client, producer, partitions={client.topic: [1]}, patient=True)
    ended(client, producer, committed=False)
    read(client, partition=1)


def test_other_producers_are_not_disturbed(client):
    other = f"{client.transactional_id}-other"
    producer, second = start(client), start(client, transactional_id=other)
    write(client, producer)
    assert add_partitions(client, second, transactional_id=other) == [NONE]
    assert produce(client, second, transactional_id=other).error_code == NONE
    init(client, transactional_id=other)
    wait_for(client, "CompleteAbort", other)
    describe(client)
    read(client)
    ended(client, producer)
    read(client)
