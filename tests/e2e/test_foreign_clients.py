"""Clients in other languages, from franz-go to KafkaJS, with default and other settings.

The scenarios are defined here; the client programs are in `clients`. These consumers read single
partitions; `groups` tests the clients as group members.
"""

import time

import pytest

from services.broker import BrokerProcess
from services.client_program import (
    FOREIGN_CLIENTS,
    ClientError,
    UnsupportedByClientError,
    client_program,
    missing_for,
)
from services.selection import long_except
from services.wire import EARLIEST, LATEST, Wire, batch_of

pytestmark = pytest.mark.timeout(600)  # The first run builds the programs.

CODECS = ("gzip", "snappy", "lz4", "zstd")
PRODUCERS = (
    {},
    {"codec": "none", "acks": "all"},
    *({"codec": codec} for codec in CODECS),
    {"acks": "0"},
    {"acks": "1"},
    {"idempotent": True},
)
VALUES = [f"{number} " * 1500 for number in range(20)]
SINGLE_MEMBER_GROUP = {"group_initial_rebalance_delay_ms": "0"}
"""Settings for KafkaJS, whose consumer of a partition is the only member of a group."""
UNREADABLE = {"kafkajs": {"snappy", "lz4", "zstd"}}
"""The codecs that need a plug-in."""


@pytest.fixture(params=long_except(FOREIGN_CLIENTS, ("franz", "kafkajs").__contains__))
def name(request):
    if missing := missing_for(request.param):
        pytest.skip(f"no {missing} here")
    return request.param


@pytest.fixture
def client(name, broker):
    with client_program(name, broker.address) as running:
        yield running


def record(value, key=None, headers=(), timestamp_ms=None):
    now_ms = time.time_ns() // 1_000_000
    return {
        "key": key,
        "value": value,
        "headers": [list(header) for header in headers],
        "timestamp_ms": timestamp_ms or now_ms,
    }


def expected_records(records, first_offset=0):
    """These records as a consumer returns them."""
    return [
        sent | {"partition": 0, "offset": offset}
        for offset, sent in enumerate(records, first_offset)
    ]


def code_of(client, command, **details):
    with pytest.raises(ClientError) as error:
        client.do(command, **details)
    return error.value.code


def test_topic_is_created_configured_and_deleted(client, name, broker, topic):
    client.do("create", topic=topic, partitions=3, configs={"retention.ms": "60000"})
    assert client.do("topics")[topic] == 3
    assert client.do("configs", topic=topic)["retention.ms"] == "60000"
    client.do("alter", topic=topic, configs={"retention.ms": "70000"})
    assert client.do("configs", topic=topic)["retention.ms"] == "70000"
    client.do("delete", topic=topic)
    with client_program(name, broker.address) as other:  # A new client has no cached metadata.
        assert topic not in other.do("topics")


def test_default_partition_count_is_that_of_the_broker(client, topic):
    client.do("create", topic=topic, partitions=-1)
    assert client.do("topics")[topic] == 1


def test_invalid_requests_get_the_error_codes_of_kafka(client, topic):
    client.do("create", topic=topic, partitions=1, configs={"max.message.bytes": "1000"})
    assert code_of(client, "create", topic=topic, partitions=1) == 36
    assert code_of(client, "create", topic="no/name", partitions=1) == 17
    assert code_of(client, "create", topic=f"{topic}-b", partitions=0) == 37
    wrong = {"retention.ms": "soon"}
    assert code_of(client, "create", topic=f"{topic}-b", partitions=1, configs=wrong) == 40
    assert code_of(client, "alter", topic=topic, configs=wrong) == 40
    assert code_of(client, "configs", topic=f"{topic}-b") == 3
    large, producer = [record("x" * 5000)], {"codec": "none", "acks": "all"}
    assert code_of(client, "produce", topic=topic, records=large, producer=producer) == 10


@pytest.mark.parametrize("producer", long_except(PRODUCERS, PRODUCERS[:2].__contains__), ids=str)
def test_auto_created_topic_returns_its_records(client, name, topic, wire, producer):
    records = [
        record("value", "key", [("name", "first"), ("name", "second"), ("empty", "")]),
        record("only a value"),
        record(None, "only a key"),
        record("", ""),
    ]
    try:
        offsets = client.do("produce", topic=topic, records=records, producer=producer)
    except UnsupportedByClientError as error:
        assert name == "kafkago" or producer.get("codec") in UNREADABLE[name]
        pytest.skip(f"{name}: {error}")
    acks = producer.get("acks", "0" if name == "kafkago" else "all")
    assert acks == "0" or offsets == [0, 1, 2, 3]
    consumed = client.do("consume", topic=topic, offset=0, count=4)
    if name == "kafkago":  # It returns empty keys and values as null.
        records[3] |= {"key": None, "value": None}
    assert consumed == expected_records(records)
    stored = [(each.key, each.value) for each in wire.read(topic)]
    assert stored == [
        (b"key", b"value"),
        (None, b"only a value"),
        (b"only a key", None),
        (b"", b""),
    ]


def test_many_records_are_read_in_order(client, topic):
    records = [record(f"{number} " * 20) for number in range(5000)]
    client.do("produce", topic=topic, records=records, producer={"acks": "1"})
    consumed = client.do("consume", topic=topic, offset=0, count=5000)
    assert consumed == expected_records(records)
    rest = client.do("consume", topic=topic, offset=4321, count=679)
    assert rest == expected_records(records[4321:], 4321)


def test_offsets_are_found_by_timestamp(client, topic):
    start_ms = time.time_ns() // 1_000_000
    for number in range(5):
        records = [record("value", timestamp_ms=start_ms + 10 * number)]
        client.do("produce", topic=topic, records=records, producer={"acks": "all"})
    assert client.do("offset", topic=topic, timestamp_ms=EARLIEST) == 0
    assert client.do("offset", topic=topic, timestamp_ms=LATEST) == 5
    assert client.do("offset", topic=topic, timestamp_ms=start_ms + 10) == 1
    assert client.do("offset", topic=topic, timestamp_ms=start_ms + 21) == 3


def test_records_are_deleted(client, name, topic):
    records = [record(f"{number}") for number in range(10)]
    client.do("produce", topic=topic, records=records, producer={"acks": "all"})
    try:
        client.do("trim", topic=topic, offset=6)
    except UnsupportedByClientError as error:
        assert name == "kafkago"
        pytest.skip(f"{name}: {error}")
    assert client.do("offset", topic=topic, timestamp_ms=EARLIEST) == 6
    assert client.do("consume", topic=topic, offset=6, count=4) == expected_records(records[6:], 6)


def test_only_committed_records_are_read(client, name, topic):
    client.do("create", topic=topic, partitions=1)
    for number, is_aborted in enumerate([False, True, False]):
        producer = {"transactional_id": topic, "abort": is_aborted}
        try:
            client.do("produce", topic=topic, records=2 * [record(f"{number}")], producer=producer)
        except UnsupportedByClientError as error:
            assert name == "kafkago"
            pytest.skip(f"{name}: {error}")
    consumed = client.do("consume", topic=topic, offset=0, count=4, committed=True)
    assert [each["value"] for each in consumed] == ["0", "0", "2", "2"]
    assert [each["offset"] for each in consumed] == [0, 1, 6, 7]
    everything = client.do("consume", topic=topic, offset=0, count=6)
    assert [each["offset"] for each in everything] == [0, 1, 3, 4, 6, 7]


@pytest.mark.parametrize("ending", long_except(["terminate", "kill"], "kill".__eq__))
def test_producer_and_consumer_survive_a_broker_restart(start_broker, name, ending):
    broker = start_broker(**SINGLE_MEMBER_GROUP)
    records = [record(f"{number}") for number in range(4)]
    options = {"acks": "all"} if name == "kafkago" else {"idempotent": True}

    def produce(client, *some):
        client.do("produce", topic="topic", records=list(some), producer=options)

    with (
        client_program(name, broker.address) as producer,
        client_program(name, broker.address) as consumer,
    ):
        produce(producer, *records[:2])
        consumer.send("consume", topic="topic", offset=0, count=4)
        while 'requests_total{api="Fetch"' not in broker.http("/metrics")[1]:
            time.sleep(0.01)
        getattr(broker, ending)()
        broker.start()
        produce(producer, records[2])
        produce(producer, records[3])
        assert consumer.result() == expected_records(records)


@pytest.fixture(scope="module")
def broker_with_segments(tmp_path_factory):
    """A broker that compressed its segments, one topic per codec."""
    directory = tmp_path_factory.mktemp("segments")
    settings = {"segment_bytes": "20000", "local_fsync": "false"} | SINGLE_MEMBER_GROUP
    with BrokerProcess(directory, **settings) as broker:
        with Wire(broker.port) as wire:
            for codec in CODECS:
                wire.create(codec, compression_type=codec)
                for value in VALUES:
                    assert wire.produce(codec, batch_of([value.encode()])).error_code == 0
        broker.terminate()  # So that nothing is read from memory.
        yield broker.start()


def test_segments_compressed_by_the_broker_are_readable(broker_with_segments, name):
    unreadable = set()
    with client_program(name, broker_with_segments.address) as client:
        for codec in CODECS:
            assert broker_with_segments.objects(f"**/{codec}/0/*.kfs")
            try:
                consumed = client.do("consume", topic=codec, offset=0, count=len(VALUES))
            except UnsupportedByClientError:
                unreadable.add(codec)
            else:
                assert [each["value"] for each in consumed] == VALUES
    assert unreadable == UNREADABLE.get(name, set())
