"""EndTxn in each state, in all versions, and its repetition."""

import pytest

from conformance.transactions.observation import describe, ended, producers, read, settled, wait_for
from conformance.transactions.requests import (
    NONE,
    SECOND,
    Producer,
    add_partitions,
    end,
    init,
    produce,
    start,
    write,
    write_second,
)
from conformance.transactions.servers import START_S_MAX
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.end_txn import END_TXN

pytestmark = pytest.mark.timeout(START_S_MAX)

VERSIONS = list(END_TXN.versions)
CLASSIC_VERSIONS = [version for version in VERSIONS if version < SECOND]
COMPLETE = {True: "CompleteCommit", False: "CompleteAbort"}
OUTCOMES = [True, False]


def raised(response) -> Producer:
    """The producer of the next transaction, from version 5 on."""
    assert response.error_code == NONE
    return Producer(response.producer_id, response.producer_epoch)


@pytest.mark.parametrize("version", CLASSIC_VERSIONS)
@pytest.mark.parametrize("committed", OUTCOMES)
def test_end_and_repetition(client, version, committed):
    producer = start(client)
    write(client, producer)
    assert end(client, producer, version, committed=committed).error_code == NONE
    wait_for(client, COMPLETE[committed])
    assert end(client, producer, version, committed=committed).error_code == NONE
    refused = end(client, producer, version, committed=not committed)
    assert refused.error_code == ErrorCode.INVALID_TXN_STATE
    read(client)
    producers(client)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("committed", OUTCOMES)
def test_end_without_a_transaction(client, version, committed):
    producer = start(client)
    end(client, producer, version, committed=committed)
    settled(client)
    end(client, producer, version, committed=committed)
    settled(client)
    init(client, patient=True)
    settled(client)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("committed", OUTCOMES)
def test_producers_that_do_not_match(client, version, committed):
    producer = start(client)
    wrong = [
        Producer(producer.id, producer.epoch + 1),
        Producer(producer.id, producer.epoch + 2),
        Producer(producer.id, -1),
        Producer(987_654_321, producer.epoch),
        Producer(-1, -1),
    ]
    for is_open in (False, True):
        for each in wrong:
            end(client, each, version, committed=committed)
        end(client, producer, version, committed=committed, transactional_id="unknown")
        end(client, producer, version, committed=committed, transactional_id="")
        if not is_open:
            write(client, producer)
    describe(client)
    ended(client, producer)
    for each in wrong:
        end(client, each, version, committed=committed)
    describe(client)


@pytest.mark.parametrize("committed", OUTCOMES)
def test_second_version_raises_the_epoch(client, committed):
    producer = start(client)
    write_second(client, producer)
    describe(client)
    following = raised(end(client, producer, SECOND, committed=committed))
    assert following == Producer(producer.id, producer.epoch + 1)
    wait_for(client, COMPLETE[committed])
    read(client)
    producers(client)
    # The sequence starts again with each epoch.
    write_second(client, following)
    raised(end(client, following, SECOND, committed=not committed))
    wait_for(client, COMPLETE[not committed])
    read(client)
    producers(client)


@pytest.mark.parametrize("committed", OUTCOMES)
def test_repetition_in_the_second_version(client, committed):
    """The response was lost: the producer repeats the request with the epoch that it has."""
    producer = start(client)
    write_second(client, producer)
    following = raised(end(client, producer, SECOND, committed=committed))
    wait_for(client, COMPLETE[committed])
    assert raised(end(client, producer, SECOND, committed=committed)) == following
    end(client, producer, SECOND, committed=not committed)
    settled(client)
    # With the new epoch it is a request of its own.
    end(client, following, SECOND, committed=committed)
    settled(client)
    end(client, following, SECOND, committed=not committed)
    settled(client)
    end(client, producer, SECOND, committed=committed)
    settled(client)
    read(client)


@pytest.mark.parametrize("committed", OUTCOMES)
def test_end_of_empty_transactions_in_the_second_version(client, committed):
    """An abort raises the epoch, a commit is refused."""
    producer = start(client)
    for _ in range(3):
        response = end(client, producer, SECOND, committed=committed)
        settled(client)
        if response.error_code == NONE:
            producer = raised(response)
    produce(client, producer, 12)
    settled(client)


@pytest.mark.parametrize("committed", OUTCOMES)
def test_empty_transaction_after_another(client, committed):
    producer = start(client)
    write_second(client, producer)
    producer = raised(end(client, producer, SECOND))
    wait_for(client, "CompleteCommit")
    end(client, producer, SECOND, committed=committed)
    settled(client)
    end(client, producer, SECOND, committed=committed)
    settled(client)


@pytest.mark.parametrize("committed", OUTCOMES)
def test_change_from_the_first_to_the_second_version(client, committed):
    """As when a client is restarted after an upgrade of the cluster."""
    producer = start(client)
    write(client, producer)
    ended(client, producer, committed=committed)
    write_second(client, producer, sequence=1)
    producer = raised(end(client, producer, SECOND, committed=committed))
    wait_for(client, COMPLETE[committed])
    write(client, producer)
    ended(client, producer)
    end(client, producer, SECOND)
    end(client, producer, SECOND, committed=False)
    describe(client)
    read(client)
    producers(client)


@pytest.mark.parametrize("version", [4, 5])
def test_mixed_versions_within_a_transaction(client, version):
    producer = start(client)
    write(client, producer)
    assert produce(client, producer, 12, partition=1).error_code == NONE
    assert produce(client, producer, 12, sequence=1).error_code == NONE
    describe(client)
    end(client, producer, version)
    wait_for(client, "CompleteCommit")
    read(client)
    read(client, partition=1)
    producers(client, (0, 1))


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("epoch", [32_765, 32_766])
def test_exhausted_epochs(client, version, epoch):
    """The producer gets another id when no epoch is left."""
    other = init(client, transactional_id=None)
    producer = Producer(other.producer_id, epoch - 1)
    response = init(client, producer=producer, patient=True)
    assert response.error_code == NONE
    producer = Producer(response.producer_id, response.producer_epoch)
    for _ in range(3):
        if version < SECOND:
            write(client, producer)
            ended(client, producer)
            producer = start(client)
        else:
            write_second(client, producer)
            producer = raised(end(client, producer, version))
            wait_for(client, "CompleteCommit")
        describe(client)
    read(client)
    producers(client)


def test_exhausted_epochs_by_initialization(client):
    """As by a producer that is restarted often."""
    other = init(client, transactional_id=None)
    init(client, producer=Producer(other.producer_id, 32_763), patient=True)
    describe(client)
    for _ in range(5):
        init(client, patient=True)
        describe(client)


def test_exhausted_epochs_with_repeated_ends(client):
    """The repetition gets the new producer id, too."""
    first = start(client)
    old = Producer(first.id, first.epoch)
    for _ in range(2):
        assert add_partitions(client, old, patient=True) == [NONE]
        response = end(client, old, SECOND)
        wait_for(client, "CompleteCommit")
        assert raised(end(client, old, SECOND)) == raised(response)
        old = raised(response)
    describe(client)
    read(client)
