"""InitProducerId: new ids, ids that are known, fencing, and requests with id and epoch."""

import pytest

from conformance.transactions.observation import describe, ended, producers, read, wait_for
from conformance.transactions.requests import (
    NONE,
    SECOND,
    Producer,
    add_offsets,
    add_partitions,
    commit_offsets,
    end,
    init,
    produce,
    start,
    write,
    write_second,
)
from conformance.transactions.servers import START_S_MAX
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest

pytestmark = pytest.mark.timeout(START_S_MAX)

VERSIONS = list(INIT_PRODUCER_ID.versions)
UNUSUAL = {
    "space": " ",
    "slash": "a/b",
    "dots": "../..",
    "percent": "%2F",
    "line": "\n",
    "umlaut": "ä",
    "long": "x" * 900,
}
RESUMING_VERSIONS = [version for version in VERSIONS if version >= 3]


@pytest.mark.parametrize("version", VERSIONS)
def test_new_id_and_again(client, version):
    first = init(client, version, patient=True)
    assert (first.error_code, first.producer_epoch) == (NONE, 0)
    describe(client)
    second = init(client, version)
    assert (second.producer_id, second.producer_epoch) == (first.producer_id, 1)
    describe(client)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("transactional_id", ["no", None])
def test_timeout_of_the_request(client, version, transactional_id):
    """An idempotent producer may send any timeout."""
    id_ = transactional_id and client.transactional_id
    for timeout_ms in (-1, 0, 1, 900_000, 900_001, 2**31 - 1):
        init(client, version, transactional_id=id_, timeout_ms=timeout_ms, patient=True)
    describe(client)


def test_timeout_changes_with_the_next_request(client):
    start(client, timeout_ms=1_000)
    start(client, timeout_ms=90_000)
    describe(client)


@pytest.mark.parametrize("version", VERSIONS)
def test_transactional_id_of_no_characters(client, version):
    """It is another thing than none at all."""
    request = InitProducerIdRequest("", 60_000)
    assert client.call(INIT_PRODUCER_ID, version, request).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [0, 5])
@pytest.mark.parametrize("transactional_id", UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_transactional_ids(client, version, transactional_id):
    id_ = f"{client.transactional_id}{transactional_id}"
    init(client, version, transactional_id=id_, patient=True)
    init(client, version, transactional_id=id_)
    describe(client, id_)


@pytest.mark.parametrize("version", RESUMING_VERSIONS)
def test_idempotent_producer_with_id_and_epoch(client, version):
    for producer in [(5, 0), (5, -1), (-1, 5), (-1, -1), (-2, -2)]:
        init(client, version, transactional_id=None, producer=Producer(*producer))


@pytest.mark.parametrize("version", RESUMING_VERSIONS)
def test_unknown_transactional_id_with_id_and_epoch(client, version):
    """As after the expiry of the id."""
    other = init(client, version, transactional_id=None)
    for number, epoch in enumerate((0, 7, 32766, 32767)):
        init(
            client,
            version,
            transactional_id=f"{client.transactional_id}{number}",
            producer=Producer(other.producer_id, epoch),
            patient=True,
        )


@pytest.mark.parametrize("version", RESUMING_VERSIONS)
def test_id_and_epoch_that_do_not_belong_together(client, version):
    producer = start(client)
    for wrong in [
        Producer(producer.id, -1),
        Producer(-1, producer.epoch),
        Producer(producer.id, producer.epoch + 1),
        Producer(987_654_321, producer.epoch),
        Producer(987_654_321, 5),
    ]:
        init(client, version, producer=wrong)
        describe(client)


@pytest.mark.parametrize("version", RESUMING_VERSIONS)
def test_epoch_is_raised_for_the_present_producer(client, version):
    producer = start(client)
    raised = init(client, version, producer=producer)
    assert (raised.error_code, raised.producer_epoch) == (NONE, producer.epoch + 1)
    # The response was lost, and the producer asks again with what it had.
    again = init(client, version, producer=producer)
    assert (again.error_code, again.producer_epoch) == (NONE, producer.epoch + 1)
    # Another producer takes the id over; neither of these epochs is the last one now.
    start(client)
    start(client)
    init(client, version, producer=producer)
    init(client, version, producer=Producer(producer.id, producer.epoch + 1))
    describe(client)


@pytest.mark.parametrize("version", RESUMING_VERSIONS)
def test_epoch_is_raised_after_transactions(client, version):
    producer = start(client)
    write(client, producer)
    ended(client, producer)
    raised = init(client, version, producer=producer)
    assert raised.error_code == NONE
    raised = Producer(raised.producer_id, raised.producer_epoch)
    write(client, raised, partition=1)
    ended(client, raised, committed=False)
    init(client, version, producer=producer)
    init(client, version, producer=raised)
    describe(client)
    read(client, partition=1)


@pytest.mark.parametrize("version", VERSIONS)
def test_open_transaction_is_aborted(client, version):
    """The first response is CONCURRENT_TRANSACTIONS; the abort has a raised epoch."""
    producer = start(client)
    write(client, producer)
    first = init(client, version)
    assert first.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    wait_for(client, "CompleteAbort")
    second = init(client, version)
    assert second.error_code == NONE
    assert second.producer_epoch == producer.epoch + 2
    describe(client)
    read(client)
    producers(client)


@pytest.mark.parametrize("version", RESUMING_VERSIONS)
def test_open_transaction_is_aborted_by_its_own_producer(client, version):
    producer = start(client)
    write(client, producer)
    assert init(client, version, producer=producer).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    wait_for(client, "CompleteAbort")
    init(client, version, producer=producer)
    describe(client)
    read(client)


@pytest.mark.parametrize("version", [4, SECOND])
def test_requests_of_a_fenced_producer(client, version):
    old = start(client)
    write(client, old)
    new = start(client)
    assert new.epoch > old.epoch
    produce(client, old, sequence=1)
    produce(client, old, 12, sequence=1)
    produce(client, old, partition=1)
    for api_version in (0, 1, 2, 3):
        add_partitions(client, old, api_version)
    for api_version in (0, 1, 2, 3, 4):
        add_offsets(client, old, api_version)
    for api_version in (0, 1, 2, 3, 4, 5):
        end(client, old, api_version)
        end(client, old, api_version, committed=False)
    for api_version in (0, 1, 2, 3, 4, 5):
        commit_offsets(client, old, api_version)
    for api_version in (3, 4, 5):
        init(client, api_version, producer=old)
    write(client, new)
    read(client)
    end(client, new, version)


def test_fenced_producer_of_the_second_version(client):
    old = start(client)
    write_second(client, old)
    new = start(client)
    produce(client, old, 12, sequence=1)
    produce(client, old, 12, partition=1)
    write_second(client, new)
    produce(client, old, 12, sequence=1)
    end(client, old, SECOND)
    assert end(client, new, SECOND).producer_epoch == new.epoch + 1
    wait_for(client, "CompleteCommit")
    read(client)
    producers(client, (0, 1))
