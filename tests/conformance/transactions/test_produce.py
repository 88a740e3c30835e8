"""Produce with the transactional bit: verification, sequences, epochs, and producers without."""

import pytest

from conformance.transactions.observation import describe, ended, producers, read, wait_for
from conformance.transactions.requests import (
    CLASSIC_PRODUCE,
    NONE,
    SECOND,
    SECOND_PRODUCE,
    Producer,
    add_partitions,
    end,
    init,
    produce,
    produce_batches,
    start,
    write,
    write_second,
)
from conformance.transactions.servers import START_S_MAX
from kafscale.protocol.error_codes import ErrorCode
from services.wire import batch_of

pytestmark = pytest.mark.timeout(START_S_MAX)

CLASSIC_VERSIONS = [3, 5, 7, 8, 9, 10, 11]
SECOND_VERSIONS = [12, 13]
VERSIONS = [*CLASSIC_VERSIONS, *SECOND_VERSIONS]
SEQUENCE_MAX = 2**31 - 1


@pytest.mark.parametrize("version", CLASSIC_VERSIONS)
def test_partition_that_was_not_added(client, version):
    producer = start(client)
    assert produce(client, producer, version).error_code != NONE
    read(client)
    assert add_partitions(client, producer, partitions={client.topic: [1]}) == [NONE]
    assert produce(client, producer, version).error_code != NONE
    assert produce(client, producer, version, partition=1).error_code == NONE
    read(client, partition=1)
    producers(client, (0, 1))


@pytest.mark.parametrize("version", VERSIONS)
def test_records_of_a_transaction(client, version):
    producer = start(client)
    assert add_partitions(client, producer) == [NONE]
    assert produce(client, producer, version, values=[b"a", b"b"]).error_code == NONE
    assert produce(client, producer, version, sequence=2).error_code == NONE
    read(client)
    producers(client)
    ended(client, producer)
    read(client)
    producers(client)


@pytest.mark.parametrize("version", SECOND_VERSIONS)
def test_partitions_are_added_by_produce(client, version):
    producer = start(client)
    assert produce(client, producer, version).error_code == NONE
    assert produce(client, producer, version, partition=2).error_code == NONE
    describe(client)
    producer = Producer(producer.id, end(client, producer, SECOND).producer_epoch)
    wait_for(client, "CompleteCommit")
    describe(client)
    assert produce(client, producer, version).error_code == NONE
    describe(client)
    read(client)
    read(client, partition=2)


@pytest.mark.parametrize("version", VERSIONS)
def test_wrong_epochs(client, version):
    start(client)
    producer = start(client)
    older = Producer(producer.id, producer.epoch - 1)
    newer = Producer(producer.id, producer.epoch + 1)
    for each in (older, newer):
        produce(client, each, version)
    write(client, producer)
    for each in (older, newer):
        produce(client, each, version)
        produce(client, each, version, sequence=1)
        produce(client, each, version, partition=1)
    ended(client, producer)
    for each in (older, newer):
        produce(client, each, version)
    read(client)
    producers(client)


@pytest.mark.parametrize("version", VERSIONS)
def test_wrong_producer_ids(client, version):
    producer = start(client)
    write(client, producer)
    produce(client, Producer(987_654_321, producer.epoch), version)
    produce(client, producer, version, transactional_id="unknown", partition=1)
    produce(client, producer, version, transactional_id="unknown", sequence=1)
    produce(client, Producer(-1, -1), version, sequence=-1)
    read(client)


@pytest.mark.parametrize("version", VERSIONS)
def test_transactional_batch_without_a_transactional_id(client, version):
    producer = start(client)
    assert produce(client, producer, version, transactional_id=None).error_code != NONE
    assert add_partitions(client, producer) == [NONE]
    produce(client, producer, version, transactional_id=None)
    produce(client, producer, version)
    produce(client, producer, version, transactional_id=None, sequence=1)
    read(client)


@pytest.mark.parametrize("version", VERSIONS)
def test_plain_batch_with_a_transactional_id(client, version):
    """Of a producer whose transaction is not open in the partition, or is."""
    producer = start(client)
    plain = {"transactional": False}
    produce(client, producer, version, partition=1, **plain)
    produce(client, producer, version, partition=1, sequence=1, transactional_id=None, **plain)
    write(client, producer)
    produce(client, producer, version, sequence=1, **plain)
    produce(client, producer, version, sequence=1, transactional_id=None, **plain)
    read(client)
    ended(client, producer)
    produce(client, producer, version, sequence=1, **plain)
    read(client)
    read(client, partition=1)


@pytest.mark.parametrize("version", [CLASSIC_PRODUCE, SECOND_PRODUCE])
def test_batch_without_a_producer(client, version):
    """Records of other producers may be between those of a transaction."""
    nothing = Producer(-1, -1)
    plain = {"transactional": False, "sequence": -1, "transactional_id": None}
    producer = start(client)
    write(client, producer)
    produce(client, nothing, version, **plain)
    produce(client, nothing, version, sequence=-1)
    produce(client, nothing, version, transactional=False, sequence=-1)
    read(client)
    ended(client, producer, committed=False)
    produce(client, nothing, version, **plain)
    read(client)


@pytest.mark.parametrize("version", VERSIONS)
def test_sequences_within_a_transaction(client, version):
    producer = start(client)
    assert add_partitions(client, producer) == [NONE]
    produce(client, producer, version, values=[b"a", b"b"])
    for sequence in (0, 1, 2, 2, 4, 5, SEQUENCE_MAX, 3):
        produce(client, producer, version, sequence=sequence)
    assert produce(client, producer, version, values=[b"a", b"b"]).base_offset == 0
    produce(client, producer, version, values=[b"a", b"b", b"c"])
    read(client)
    producers(client)


@pytest.mark.parametrize("sequence", [0, 1, 7, SEQUENCE_MAX])
@pytest.mark.parametrize("version", [CLASSIC_PRODUCE, SECOND_PRODUCE])
def test_first_sequence_of_a_producer(client, version, sequence):
    producer = start(client)
    assert add_partitions(client, producer) == [NONE]
    produce(client, producer, version, sequence=sequence)
    produce(client, producer, version, sequence=0 if sequence == SEQUENCE_MAX else sequence + 1)
    ended(client, producer)
    read(client)


@pytest.mark.parametrize("version", [CLASSIC_PRODUCE, SECOND_PRODUCE])
@pytest.mark.parametrize("sequences", [(1, 2, 0, 3), (0, 1), (2, 1), (0, 2, 1)], ids=str)
def test_sequences_in_the_next_classic_transaction(client, version, sequences):
    """They continue; a sequence that is out of order may block the ones after it."""
    producer = start(client)
    write(client, producer)
    ended(client, producer)
    assert add_partitions(client, producer, patient=True) == [NONE]
    for sequence in sequences:
        produce(client, producer, version, sequence=sequence)
    ended(client, producer, committed=False)
    read(client)
    producers(client)


@pytest.mark.parametrize("sequence", [0, 1, 5])
def test_sequences_start_again_after_an_end_of_the_second_version(client, sequence):
    producer = start(client)
    write_second(client, producer)
    following = Producer(producer.id, end(client, producer, SECOND).producer_epoch)
    wait_for(client, "CompleteCommit")
    produce(client, following, SECOND_PRODUCE, sequence=sequence)
    produce(client, producer, SECOND_PRODUCE, sequence=1)
    produce(client, following, SECOND_PRODUCE, sequence=sequence + 1)
    read(client)
    producers(client)


@pytest.mark.parametrize("sequence", [0, 1])
def test_sequences_start_again_with_a_new_epoch(client, sequence):
    producer = start(client)
    write(client, producer)
    ended(client, producer)
    following = start(client)
    assert add_partitions(client, following) == [NONE]
    produce(client, following, sequence=sequence)
    produce(client, following, sequence=sequence + 1)
    read(client)
    producers(client)


@pytest.mark.parametrize("version", VERSIONS)
def test_batch_after_the_end(client, version):
    """It was late, or its producer does not know that the transaction is over."""
    producer = start(client)
    write(client, producer)
    ended(client, producer)
    produce(client, producer, version, sequence=1)
    produce(client, producer, version, sequence=0)
    describe(client)
    read(client)
    producers(client)


@pytest.mark.parametrize("version", SECOND_VERSIONS)
def test_batch_with_the_old_epoch_after_the_end(client, version):
    producer = start(client)
    write_second(client, producer)
    end(client, producer, SECOND)
    wait_for(client, "CompleteCommit")
    produce(client, producer, version, sequence=1)
    produce(client, producer, version, sequence=0)
    produce(client, producer, version, partition=1)
    produce(client, producer, CLASSIC_PRODUCE, sequence=1)
    describe(client)
    read(client)


@pytest.mark.parametrize("version", VERSIONS)
def test_some_partitions_are_part_of_the_transaction(client, version):
    producer = start(client)
    assert add_partitions(client, producer, partitions={client.topic: [0, 2]}) == [NONE, NONE]

    def batch() -> bytearray:
        return batch_of(
            [b"value"],
            timestamp_ms=client.timestamp_ms,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=0,
            transactional=True,
        )

    produce_batches(client, {index: batch() for index in (0, 1, 2, 7)}, version)
    describe(client)
    for partition in range(3):
        read(client, partition=partition)


@pytest.mark.parametrize("version", [CLASSIC_PRODUCE, SECOND_PRODUCE])
def test_two_producers_in_one_request(client, version):
    producer = start(client)
    other = init(client, transactional_id=None)
    assert add_partitions(client, producer) == [NONE]
    batches = {
        partition: batch_of(
            [b"value"],
            timestamp_ms=client.timestamp_ms,
            producer_id=id_,
            producer_epoch=epoch,
            base_sequence=0,
            transactional=transactional,
        )
        for partition, (id_, epoch, transactional) in enumerate(
            [(producer.id, producer.epoch, True), (other.producer_id, 0, False)]
        )
    }
    try:
        produce_batches(client, batches, version)
    except ConnectionError:
        pytest.fail("the request was refused as a whole")
    read(client)
    read(client, partition=1)


@pytest.mark.parametrize("version", [CLASSIC_PRODUCE, SECOND_PRODUCE])
def test_control_batches_of_clients_are_refused(client, version):
    producer = start(client)
    write(client, producer)
    batch = batch_of(
        [b"value"],
        timestamp_ms=client.timestamp_ms,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=1,
        transactional=True,
        control=True,
    )
    (refused,) = produce_batches(client, {0: batch}, version)
    assert refused.error_code == ErrorCode.INVALID_RECORD
    read(client)


@pytest.mark.parametrize("acks", [-1, 1])
def test_acks(client, acks):
    producer = start(client)
    assert add_partitions(client, producer) == [NONE]
    produce(client, producer, acks=acks)
    ended(client, producer)
    read(client)
