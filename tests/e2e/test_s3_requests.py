"""The number of S3 requests: PUTs stay within their budget, and concurrent readers share GETs."""

import threading
import time
from urllib.parse import urlsplit

import pytest

from services.broker import BrokerProcess
from services.exposition import sample
from services.s3_server import broker_settings
from services.slow_link import slow_link
from services.wire import Wire, batch_of

pytestmark = pytest.mark.timeout(60)

PARTITIONS = 24
PRODUCERS = 4
SECONDS = 10
PUTS_PER_SECOND, PUTS_BURST = 2.0, 4
"""The defaults of `storage.walPutsPerSecond` and `storage.walPutsBurst`."""

DELAY_S = 0.1
READERS = 12


@pytest.mark.long
def test_put_rate_is_independent_of_partitions_and_requests(start_broker, s3):
    """N-09."""
    broker = start_broker(**broker_settings(s3.bucket))
    with Wire(broker.port) as wire:
        wire.create("topic", PARTITIONS)
    before, began = put_count(broker), time.monotonic()
    produced = [0] * PRODUCERS
    ended = threading.Event()

    def produce(number: int) -> None:
        with Wire(broker.port) as wire:
            while not ended.is_set():
                partition = (produced[number] * PRODUCERS + number) % PARTITIONS
                response = wire.produce("topic", batch_of([b"value"]), partition=partition, acks=1)
                assert response.error_code == 0
                produced[number] += 1
                ended.wait(0.01)

    threads = [threading.Thread(target=produce, args=(number,)) for number in range(PRODUCERS)]
    for thread in threads:
        thread.start()
    time.sleep(SECONDS)
    ended.set()
    for thread in threads:
        thread.join()
    time.sleep(1.5)  # Wait for pending uploads, and for metrics, which are updated once a second.
    seconds = time.monotonic() - began
    puts = put_count(broker) - before
    assert min(produced) * PRODUCERS > 10 * PARTITIONS
    # Overdue uploads ignore the budget, and overdraw it by one burst at most.
    assert SECONDS < puts <= PUTS_PER_SECOND * seconds + 2 * PUTS_BURST
    assert len(s3.objects("default/_wal/*/*/*.kfw")) <= puts + 1, (
        "plus the object that the start writes"
    )


def put_count(broker: BrokerProcess) -> float:
    return sample(broker.http("/metrics")[1], 's3_operations_total{operation="put"')


def test_concurrent_readers_share_every_get(start_broker, s3):
    broker = start_broker(
        **broker_settings(s3.bucket), segment_bytes=str(1 << 20), storage_wal_puts_per_second="1000"
    )
    values = [b"%03d" % number * 100_000 for number in range(30)]
    with Wire(broker.port) as wire:
        wire.create("topic", compression_type="producer")
        for value in values:
            assert wire.produce("topic", batch_of([value])).error_code == 0
    broker.terminate()
    segments = s3.objects("default/topic/0/*.kfs")
    assert len(segments) > 3
    address = urlsplit(s3.bucket.endpoint)
    with slow_link(address.port, delay_s=DELAY_S / 2) as port:
        broker.settings["s3_endpoint"] = f"http://127.0.0.1:{port}"
        broker.start()
        before = get_counts(broker)
        began = time.monotonic()
        result = read_concurrently(broker)
        seconds = time.monotonic() - began
        after = get_counts(broker)
        broker.terminate()
    assert result == [values] * READERS
    # Every segment is one block: one GET for it and one for its index, shared by all readers. The
    # last index was read when the log was opened.
    assert after["get_range"] - before["get_range"] == len(segments)
    assert after["get"] - before["get"] == len(segments) - 1
    # A sequential reader would wait for every round trip; read-ahead hides those of the segments.
    assert seconds < 2 * len(segments) * DELAY_S + 1


def read_concurrently(broker: BrokerProcess) -> list[list[bytes | None]]:
    result: list[list[bytes | None]] = [[] for _ in range(READERS)]

    def read(number: int) -> None:
        with Wire(broker.port) as wire:
            result[number] = [record.value for record in wire.read("topic")]

    threads = [threading.Thread(target=read, args=(number,)) for number in range(READERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return result


def get_counts(broker: BrokerProcess) -> dict[str, float]:
    text = broker.http("/metrics")[1]
    return {
        name: sample(text, f's3_operations_total{{operation="{name}"')
        for name in ("get", "get_range")
    }
