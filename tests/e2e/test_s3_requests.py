"""What a broker asks of its bucket: as few requests as the bill allows, and none of them twice."""

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
def test_puts_grow_with_time_and_not_with_partitions_or_requests(start_broker, s3):
    """N-09."""
    broker = start_broker(**broker_settings(s3.bucket))
    with Wire(broker.port) as wire:
        wire.create("topic", PARTITIONS)
    before, began = counted(broker), time.monotonic()
    produced = [0] * PRODUCERS
    ended = threading.Event()

    def produce(number: int) -> None:
        with Wire(broker.port) as wire:
            while not ended.is_set():
                partition = (produced[number] * PRODUCERS + number) % PARTITIONS
                answer = wire.produce("topic", batch_of([b"value"]), partition=partition, acks=1)
                assert answer.error_code == 0
                produced[number] += 1
                ended.wait(0.01)

    threads = [threading.Thread(target=produce, args=(number,)) for number in range(PRODUCERS)]
    for thread in threads:
        thread.start()
    time.sleep(SECONDS)
    ended.set()
    for thread in threads:
        thread.join()
    time.sleep(1.5)  # For what still waits, and for metrics, which are copied once a second.
    seconds = time.monotonic() - began
    puts = counted(broker) - before
    assert min(produced) * PRODUCERS > 10 * PARTITIONS
    # What is due goes out regardless, and puts the budget in a debt of one burst at most.
    assert SECONDS < puts <= PUTS_PER_SECOND * seconds + 2 * PUTS_BURST
    assert len(s3.objects("default/_wal/*/*/*.kfw")) <= puts + 1, "the opening comes on top"


def counted(broker: BrokerProcess) -> float:
    return sample(broker.http("/metrics")[1], 's3_operations_total{operation="put"')


def test_many_readers_of_a_distant_bucket_share_every_read(start_broker, s3):
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
        before = reads(broker)
        began = time.monotonic()
        found = read_at_once(broker)
        seconds = time.monotonic() - began
        after = reads(broker)
        broker.terminate()
    assert found == [values] * READERS
    # Every segment is one block: it takes one read of it and one of its index, whoever asks. The
    # last index was read when the log was opened.
    assert after["get_range"] - before["get_range"] == len(segments)
    assert after["get"] - before["get"] == len(segments) - 1
    # Each on its own would take as long as all round trips: read-ahead hides those of the segments.
    assert seconds < 2 * len(segments) * DELAY_S + 1


def read_at_once(broker: BrokerProcess) -> list[list[bytes | None]]:
    found: list[list[bytes | None]] = [[] for _ in range(READERS)]

    def read(number: int) -> None:
        with Wire(broker.port) as wire:
            found[number] = [record.value for record in wire.read("topic")]

    threads = [threading.Thread(target=read, args=(number,)) for number in range(READERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def reads(broker: BrokerProcess) -> dict[str, float]:
    text = broker.http("/metrics")[1]
    return {
        name: sample(text, f's3_operations_total{{operation="{name}"')
        for name in ("get", "get_range")
    }
