"""Fetch and ListOffsets in both isolation levels."""

import pytest

from conformance.transactions.observation import (
    COMMITTED,
    UNCOMMITTED,
    end_offset,
    ended,
    fetch,
    fetch_request,
    read,
    wait_for,
)
from conformance.transactions.requests import (
    NONE,
    SECOND,
    Producer,
    add_partitions,
    end,
    produce,
    start,
    write,
    write_second,
)
from conformance.transactions.servers import START_S_MAX
from kafscale.protocol.messages.fetch import FETCH

pytestmark = pytest.mark.timeout(START_S_MAX)

FETCH_VERSIONS = [4, 5, 7, 9, 11, 12, 13, 15, 16, 17]
LIST_VERSIONS = [2, 3, 4, 5, 6, 7, 8, 9, 10]
ISOLATION = [UNCOMMITTED, COMMITTED]
NOTHING = Producer(-1, -1)
EARLIEST, LATEST, HIGHEST_TIMESTAMP = -2, -1, -3


def plain(client, count: int = 1) -> None:
    """Records of a producer without transactions."""
    for _ in range(count):
        produce(client, NOTHING, sequence=-1, transactional=False, transactional_id=None)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@pytest.mark.parametrize("isolation", ISOLATION)
def test_fetch_while_a_transaction_is_open_and_after_it(client, isolation, version):
    plain(client)
    producer = start(client)
    write(client, producer, values=[b"a", b"b"])
    plain(client)
    for offset in (0, 1, 2, 4, 5):
        fetch(client, isolation, version, offset=offset)
    ended(client, producer, committed=False)
    plain(client)
    for offset in (0, 1, 2, 4, 5, 6):
        fetch(client, isolation, version, offset=offset)


@pytest.mark.parametrize("version", LIST_VERSIONS)
@pytest.mark.parametrize("isolation", ISOLATION)
def test_list_offsets(client, isolation, version):
    def compare() -> None:
        for timestamp_ms in (LATEST, EARLIEST, client.timestamp_ms, client.timestamp_ms + 1, 0):
            end_offset(client, isolation, version=version, timestamp_ms=timestamp_ms)

    compare()
    producer = start(client)
    write(client, producer)
    plain(client)
    compare()
    ended(client, producer)
    for timestamp_ms in (LATEST, EARLIEST, client.timestamp_ms, 0):
        end_offset(client, isolation, version=version, timestamp_ms=timestamp_ms)


@pytest.mark.parametrize("isolation", ISOLATION)
def test_highest_timestamp_while_a_transaction_is_open(client, isolation):
    plain(client)
    producer = start(client)
    write(client, producer)
    end_offset(client, isolation, timestamp_ms=HIGHEST_TIMESTAMP)


def test_interleaved_transactions(client):
    """The stable offset waits for the oldest; aborted ones are listed where they touch the data."""
    names = [f"{client.transactional_id}-{number}" for number in range(4)]
    producers = [start(client, transactional_id=name) for name in names]
    partitions = {client.topic: [0]}
    for count in range(2):
        for name, producer in zip(names, producers, strict=True):
            added = add_partitions(client, producer, transactional_id=name, partitions=partitions)
            assert added == [NONE]
            produce(client, producer, sequence=count, transactional_id=name)
            read(client)
    for number, committed in ((2, False), (0, False), (3, True), (1, False)):
        end(client, producers[number], committed=committed, transactional_id=names[number])
        wait_for(client, "CompleteCommit" if committed else "CompleteAbort", names[number])
        read(client)
    for offset in range(13):
        fetch(client, offset=offset)


@pytest.mark.parametrize("committed", [True, False])
def test_long_series_of_transactions(client, committed):
    producer = start(client)
    for number in range(12):
        write_second(client, producer)
        response = end(client, producer, SECOND, committed=committed == (number % 3 != 0))
        producer = Producer(response.producer_id, response.producer_epoch)
    wait_for(client, "CompleteCommit" if committed else "CompleteAbort")
    read(client)
    for offset in range(0, 24, 3):
        fetch(client, offset=offset)


def test_small_responses(client):
    """Aborted transactions are those of the range that the response covers."""
    producer = start(client)
    for number in range(6):
        write(client, producer, sequence=number, values=[b"x" * 300])
        ended(client, producer, committed=number % 2 == 1)
    for offset in range(12):
        for max_bytes in (1, 400, 800, 1200):
            fetch(client, offset=offset, max_bytes=max_bytes)


def test_log_start_within_an_aborted_transaction(client):
    producer = start(client)
    write(client, producer)
    plain(client, 3)
    assert produce(client, producer, sequence=1).error_code == NONE
    ended(client, producer, committed=False)
    plain(client)
    client.trim(client.topic, 0, 2)
    for offset in (2, 3, 4, 5):
        fetch(client, offset=offset)


def test_log_start_within_an_open_transaction(client):
    """Records may only be deleted below the high watermark, which an open transaction permits."""
    producer = start(client)
    write(client, producer)
    plain(client, 3)
    client.trim(client.topic, 0, 2)
    fetch(client, offset=2)
    read_ends(client)
    ended(client, producer)
    fetch(client, offset=2)
    read_ends(client)


def read_ends(client) -> None:
    for isolation in ISOLATION:
        end_offset(client, isolation)
        end_offset(client, isolation, timestamp_ms=EARLIEST)


def test_waiting_fetch_of_committed_records(client):
    """It waits while only an open transaction grows, and returns with the outcome."""
    producer = start(client)
    write(client, producer)
    client.send(FETCH, 12, fetch_request(client, max_wait_ms=4000), on="reader")
    assert produce(client, producer, sequence=1).error_code == NONE
    ended(client, producer)
    client.receive("reader")


def test_fetch_that_times_out_without_committed_records(client):
    producer = start(client)
    write(client, producer)
    fetch(client, max_wait_ms=200)
    fetch(client, UNCOMMITTED, max_wait_ms=200)
