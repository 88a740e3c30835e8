"""Records over the API: browse in any codec and format, and produce."""

import base64
import io
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import fastavro
import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, Producer

from kafscale.serde.registry import wire_format
from services import schema_registry
from services.console import ConsoleProcess

pytestmark = pytest.mark.timeout(60)

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CUSTOMER = {
    "type": "record",
    "name": "Customer",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "city", "type": ["null", "string"]},
        {"name": "since", "type": {"type": "int", "logicalType": "date"}},
    ],
}
PROTO = """
syntax = "proto3";
package shop;
message Ignored {}
message Order { int64 order_id = 1; repeated string items = 2; }
"""


def create(console_client, topic, partition_count=1, **configs):
    console_client.post(
        "/topics", {"name": topic, "partitionCount": partition_count, "configs": configs}
    )


def browse(console_client, topic, start="newest", **fields):
    start = start if isinstance(start, dict) else {"kind": start}
    return console_client.post(f"/topics/{topic}/messages/browse", {"start": start, **fields})


def positions(page):
    return [(each["partition"], each["offset"]) for each in page["messages"]]


def texts(page, of="value"):
    return [each[of] and each[of]["text"] for each in page["messages"]]


@contextmanager
def producing(broker, **settings):
    failures = []
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 20, **settings})

    def produce(topic, value=None, **more):
        producer.produce(
            topic, value, on_delivery=lambda error, _: error and failures.append(error), **more
        )

    yield produce
    assert producer.flush(20) == 0
    assert not failures


def pages(console_client, topic, start, **fields) -> Iterator[dict]:
    """All pages, each continuing the one before."""
    cursor = {}
    for _ in range(100):
        page = browse(console_client, topic, start, cursor=cursor, **fields)
        yield page
        if page["isComplete"]:
            return
        cursor = page["next"]
    pytest.fail("it never ends")


# --- browsing ----------------------------------------------------------------------------------


def test_committed_pages_have_no_records_of_open_and_aborted_transactions(console_client, broker):
    create(console_client, "transactions")
    for number, end in enumerate(("abort_transaction", "commit_transaction", "flush")):
        settings = {"bootstrap.servers": broker.address, "transactional.id": f"id {number}"}
        producer = Producer(settings)
        producer.init_transactions(30)
        producer.begin_transaction()
        for _ in range(3):
            producer.produce("transactions", f"{end}", partition=0)
            producer.flush(30)
        getattr(producer, end)(30)
    time_ms = {"kind": "time", "timeMs": 1}
    for start in ("newest", "earliest", time_ms):
        everything = texts(browse(console_client, "transactions", start))
        assert set(everything) == {"abort_transaction", "commit_transaction", "flush"}
        page = browse(console_client, "transactions", start, isolation="read_committed", limit=2)
        rest = browse(
            console_client, "transactions", start, isolation="read_committed", cursor=page["next"]
        )
        assert rest["isComplete"]
        assert texts(page) + texts(rest) == ["commit_transaction"] * 3


def test_records_of_every_codec_newest_first(console_client, broker, topic):
    create(console_client, topic)
    for codec in CODECS:
        with producing(broker, **{"compression.type": codec}) as produce:
            for number in range(3):
                produce(topic, f"{codec} {number} {'pad ' * 50}", key=f"k{number}")
    page = browse(console_client, topic, limit=15)
    shown = [text[:6].strip() for text in texts(page)]
    assert shown == [f"{codec} {n}"[:6].strip() for codec in reversed(CODECS) for n in (2, 1, 0)]
    assert [offset for _, offset in positions(page)] == list(range(14, -1, -1))
    assert page["isComplete"]
    assert page["problems"] == []
    result = browse(console_client, topic, "earliest", filter={"text": "SNAPPY 1"})
    assert positions(result) == [(0, 7)]
    assert result["scannedRecords"] == 15


def test_record_has_all_fields(console_client, broker, topic):
    create(console_client, topic)
    headers = [("trace", b"abc"), ("trace", None), ("raw", b"\0\xff")]
    with producing(broker) as produce:
        produce(topic, b'{"b": 1.50, "a": [1]}', key=b"k", headers=headers, timestamp=1234567890123)
        produce(topic, None, key=b"gone")
        produce(topic, b"", key=None)
        produce(topic, b"\0\1\xfe")
    raw, empty, tombstone, full = browse(console_client, topic)["messages"]
    assert full["key"] == {
        "format": "text",
        "text": "k",
        "sizeBytes": 1,
        "isTruncated": False,
        "schemaId": None,
        "problem": None,
    }
    assert full["value"]["format"] == "json"
    assert full["value"]["text"] == '{\n  "b": 1.50,\n  "a": [\n    1\n  ]\n}'
    assert full["value"]["sizeBytes"] == 21
    assert (full["timestampMs"], full["timestampType"]) == (1234567890123, "create")
    shown = [(each["key"], each["value"] and each["value"]["text"]) for each in full["headers"]]
    assert shown == [("trace", "abc"), ("trace", None), ("raw", "00ff")]
    assert full["sizeBytes"] == 1 + 21 + 3 + 2
    assert (tombstone["key"]["text"], tombstone["value"]) == ("gone", None)
    assert (empty["key"], empty["value"]["text"]) == (None, "")
    assert (raw["value"]["format"], raw["value"]["text"]) == ("hex", "0001fe")


@pytest.mark.parametrize("start", ["newest", "earliest"])
def test_pages_show_every_record_of_all_partitions_once_in_order(
    console_client, broker, topic, start
):
    create(console_client, topic, 3)
    with producing(broker) as produce:
        for number in range(100):
            produce(topic, f"{number}", partition=number % 3, timestamp=1_000 + number)
    listed = list(pages(console_client, topic, start, limit=30))
    assert [len(page["messages"]) for page in listed] == [30, 30, 30, 10]
    order = range(99, -1, -1) if start == "newest" else range(100)
    assert [text for page in listed for text in texts(page)] == [str(n) for n in order]


def test_cursor_continues_with_new_records(console_client, broker, topic):
    create(console_client, topic)
    with producing(broker) as produce:
        produce(topic, "one")
    page = browse(console_client, topic, "earliest")
    assert (texts(page), page["isComplete"], page["next"]) == (["one"], True, {"0": 1})
    with producing(broker) as produce:
        produce(topic, "two")
    assert texts(browse(console_client, topic, "earliest", cursor=page["next"])) == ["two"]


def test_start_by_offset_time_and_partitions(console_client, broker, topic):
    create(console_client, topic, 2)
    with producing(broker) as produce:
        for number in range(20):
            produce(topic, f"{number}", partition=number % 2, timestamp=1_000 * (number + 1))
    at_offset = browse(console_client, topic, {"kind": "offset", "offset": 8}, partitions=[1])
    assert positions(at_offset) == [(1, 8), (1, 9)]
    at_time = browse(console_client, topic, {"kind": "time", "timeMs": 18_500})
    assert texts(at_time) == ["18", "19"]
    assert texts(browse(console_client, topic, {"kind": "time", "timeMs": 99_000})) == []
    one = browse(console_client, topic, {"kind": "offset", "offset": 3}, partitions=[0], limit=1)
    assert texts(one) == ["6"]


def test_filters(console_client, broker, topic):
    create(console_client, topic, 4)
    with producing(broker, **{"compression.type": "zstd"}) as produce:
        for number in range(500):
            value = {
                "id": number,
                "who": {"city": "Köln" if number == 77 else "Rom"},
                "l": [number],
            }
            headers = [("odd", b"yes")] if number == 401 else []
            produce(topic, json.dumps(value), key=f"key-{number}", headers=headers)
        produce(topic, "no JSON at all", key="key-7")

    def numbers(**conditions):
        listed = list(pages(console_client, topic, "newest", limit=5, filter=conditions))
        shown = [text for page in listed for text in texts(page)]
        return sorted(json.loads(text)["id"] if text[0] == "{" else -1 for text in shown)

    assert numbers(key="key-7") == [-1, 7]
    assert numbers(key="key-") == []
    assert numbers(text="KEY-42") == [42, *range(420, 430)]
    assert numbers(jsonPath="who.city", jsonEquals="Köln") == [77]
    assert numbers(jsonPath="l[0]", jsonEquals="499") == [499]
    assert numbers(jsonPath="id", jsonEquals="12", key="key-13") == []
    assert numbers(header="odd") == [401]
    assert len(numbers(jsonPath="who")) == 500


def test_key_is_found_in_any_partition(console_client, broker, topic):
    create(console_client, topic, 4)
    with producing(broker) as produce:
        for partition in range(4):
            produce(topic, f"{partition}", key="stray", partition=partition)
            produce(topic, "other", key="other", partition=partition)
    assert sorted(texts(browse(console_client, topic, filter={"key": "stray"}))) == [
        "0",
        "1",
        "2",
        "3",
    ]


@pytest.mark.parametrize(
    ("format_name", "text"),
    [("text", "[1]é"), ("hex", "5b315dc3a9"), ("base64", "WzFdw6k="), ("json", "[1]é")],
)
def test_value_is_rendered_in_the_requested_format(
    console_client, broker, topic, format_name, text
):
    create(console_client, topic)
    with producing(broker) as produce:
        produce(topic, "[1]é")
    (message,) = browse(console_client, topic, value={"format": format_name})["messages"]
    assert message["value"]["text"] == text
    problem = "not valid JSON" if format_name == "json" else None
    assert message["value"]["problem"] == problem


def test_large_value_is_truncated_unless_alone(console_client, broker, topic):
    create(console_client, topic)
    with producing(broker) as produce:
        produce(topic, "é" * 100_000)
        produce(topic, "small")
    _, large = browse(console_client, topic)["messages"]
    assert (len(large["value"]["text"]), large["value"]["isTruncated"]) == (65_536, True)
    assert large["value"]["sizeBytes"] == 200_000
    (alone,) = browse(console_client, topic, "earliest", limit=1)["messages"]
    assert (alone["value"]["text"], alone["value"]["isTruncated"]) == ("é" * 100_000, False)


def test_scan_limit_is_continued_by_the_cursor(console_client, broker, topic):
    """The match is the first of 350 MB: a page ends before it and has a cursor."""
    create(console_client, topic)
    hay = b"hay " * 125_000
    for number in range(7):
        with producing(broker, **{"compression.type": "zstd"}) as produce:
            if number == 0:
                produce(topic, "the needle")
            for _ in range(100):
                produce(topic, hay)
    listed = list(pages(console_client, topic, "newest", filter={"text": "NEEDLE"}))
    assert len(listed) > 1
    assert [text for page in listed for text in texts(page)] == ["the needle"]
    assert all(page["scannedBytes"] < 340_000_000 for page in listed)
    assert sum(page["scannedRecords"] for page in listed) == 701


def test_invalid_query_is_rejected(console_client, topic):
    create(console_client, topic)
    path = f"/topics/{topic}/messages/browse"
    for body in (
        {"limit": 0},
        {"limit": 501},
        {"cursor": {"x": 1}},
        {"cursor": {"0": -5}},
        {"filter": {"jsonPath": "a..b]"}},
        {"filter": {"jsonEquals": "1"}},
        {"value": {"format": "avro"}},
        {"value": {"format": "avro", "schema": {"kind": "avro", "text": "{"}}},
        {"value": {"format": "avro", "schema": {"kind": "protobuf", "text": PROTO}}},
        {"value": {"format": "protobuf", "schema": {"kind": "protobuf", "text": "message {"}}},
        {"start": {"kind": "tomorrow"}},
    ):
        response = console_client.request("POST", path, body)
        assert response.status == 400, (body, response.body)
    assert console_client.request("POST", path, {"partitions": [9]}).status == 404
    assert console_client.request("POST", f"/topics/{topic}-none/messages/browse", {}).status == 404


# --- schemas ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def registry():
    with schema_registry.serving() as server:
        yield server


@pytest.fixture(scope="module")
def registry_visitor(_shared_broker, registry, tmp_path_factory):
    """A console_client of a console with a schema registry."""
    directory = tmp_path_factory.mktemp("schooled")
    settings = {"schema_registry_url": registry.url}
    with ConsoleProcess(directory, _shared_broker, **settings) as console:
        yield console.client()


def avro(schema, value):
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


def order(**fields):
    numbered = {"order_id": 1}
    return b"".join(bytes([numbered[name] << 3, value]) for name, value in fields.items())


def test_framed_values_are_decoded_automatically(registry_visitor, registry, broker, topic):
    registry.register(1001, json.dumps(CUSTOMER))
    registry.register(1002, PROTO, kind="PROTOBUF")
    registry.register(1003, "{}", kind="JSON")
    create(registry_visitor, topic)
    customer = avro(CUSTOMER, {"id": 7, "city": "Köln", "since": 19782})
    with producing(broker) as produce:
        produce(topic, wire_format.join(1001, customer), key="a")
        produce(topic, wire_format.join(1002, wire_format.join_indexes((1,), order(order_id=5))))
        produce(topic, wire_format.join(1003, b'{"plain": true}'))
        produce(topic, wire_format.join(4_000_000, b"unknown"))
        produce(topic, wire_format.join(1001, customer + b"rest"))
        produce(topic, b"\0\0\0\0\0\0\0\x07", key="a number")
    shown = [each["value"] for each in browse(registry_visitor, topic, "earliest")["messages"]]
    assert [each["format"] for each in shown] == ["avro", "protobuf", "json", "hex", "hex", "hex"]
    assert json.loads(shown[0]["text"]) == {"id": 7, "city": "Köln", "since": "2024-02-29"}
    assert shown[0]["schemaId"] == 1001
    assert json.loads(shown[1]["text"]) == {"order_id": "5"}
    assert json.loads(shown[2]["text"]) == {"plain": True}

    fields = browse(registry_visitor, topic, "earliest", value={"format": "avro"})["messages"]
    problems = [each["value"]["problem"] for each in fields]
    assert problems[0] is None
    assert "protobuf, not avro" in problems[1]
    assert "schema 4000000 is not in the registry" in problems[3]
    assert "4 bytes are left" in problems[4]

    result = browse(registry_visitor, topic, filter={"jsonPath": "city", "jsonEquals": "Köln"})
    assert positions(result) == [(0, 0)]
    assert positions(browse(registry_visitor, topic, filter={"text": "2024-02-29"})) == [(0, 0)]


def test_inline_schema_needs_no_registry(console_client, broker, topic):
    create(console_client, topic)
    with producing(broker) as produce:
        produce(topic, avro(CUSTOMER, {"id": 7, "city": None, "since": 0}))
        produce(topic, wire_format.join(5, avro(CUSTOMER, {"id": 8, "city": "x", "since": 0})))
        produce(topic, order(order_id=5))
    schema = {"kind": "avro", "text": json.dumps(CUSTOMER)}
    page = browse(console_client, topic, "earliest", value={"format": "avro", "schema": schema})
    assert [json.loads(text)["id"] for text in texts(page)[:2]] == [7, 8]
    assert page["messages"][2]["value"]["problem"]
    schema = {"kind": "protobuf", "text": PROTO, "message": "shop.Order"}
    page = browse(console_client, topic, value={"format": "protobuf", "schema": schema})
    assert json.loads(texts(page)[0]) == {"order_id": "5"}


def test_failing_registry_is_called_once_and_hides_no_record(
    registry_visitor, registry, broker, topic
):
    create(registry_visitor, topic)
    with producing(broker) as produce:
        for number in range(50):
            produce(topic, wire_format.join(3_000 + number, b"whatever"))
    registry.failures = [503] * 200
    requests_before = len(registry.requests)
    page = browse(registry_visitor, topic)
    registry.failures = []
    assert len(registry.requests) - requests_before == 2, "one more try, and no more"
    assert len(page["messages"]) == 50
    assert all("HTTP status 503" in each["value"]["problem"] for each in page["messages"])


# --- producing ----------------------------------------------------------------------------------


def consumed(broker, topic, count):
    consumer = Consumer(
        {"bootstrap.servers": broker.address, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    try:
        result = []
        deadline = time.monotonic() + 30
        while len(result) < count and time.monotonic() < deadline:
            result += [each for each in consumer.consume(count, 1) if not each.error()]
        return result
    finally:
        consumer.close()


def test_produced_record_reaches_a_consumer(console_client, broker, topic):
    create(console_client, topic, 3)
    produced = console_client.post(
        f"/topics/{topic}/messages",
        {
            "partition": 2,
            "key": {"text": "00ff", "format": "hex"},
            "value": {"text": base64.b64encode(b"\1\2").decode(), "format": "base64"},
            "headers": [{"key": "a", "value": "é"}, {"key": "b"}],
            "timestampMs": 1_700_000_000_000,
        },
    )
    assert produced == {"partition": 2, "offset": 0, "timestampMs": 1_700_000_000_000}
    (record,) = consumed(broker, topic, 1)
    assert (record.partition(), record.key(), record.value()) == (2, b"\0\xff", b"\1\2")
    assert record.headers() == [("a", "é".encode()), ("b", None)]
    assert record.timestamp() == (TIMESTAMP_CREATE_TIME, 1_700_000_000_000)


def test_key_selects_the_default_partition(console_client, broker, topic):
    create(console_client, topic, 5)
    settings = {"partitioner": "murmur2_random"}
    with producing(broker, **settings) as produce:
        for number in range(10):
            produce(topic, "theirs", key=f"k{number}")
    for number in range(10):
        console_client.post(
            f"/topics/{topic}/messages",
            {"key": {"text": f"k{number}"}, "value": {"text": '{"a": 1}', "format": "json"}},
        )
    where = {}
    for record in consumed(broker, topic, 20):
        where.setdefault(record.key(), []).append(record.partition())
    assert all(len(set(partitions)) == 1 for partitions in where.values())
    assert all(len(partitions) == 2 for partitions in where.values())


def test_tombstone_and_record_without_key(console_client, topic):
    create(console_client, topic)
    console_client.post(f"/topics/{topic}/messages", {"key": {"text": "k"}})
    console_client.post(f"/topics/{topic}/messages", {"value": {"text": "v"}})
    assert [
        (k, v)
        for k, v in zip(
            texts(browse(console_client, topic), "key"),
            texts(browse(console_client, topic)),
            strict=True,
        )
    ] == [(None, "v"), ("k", None)]


def test_log_append_time_is_returned(console_client, topic):
    create(console_client, topic, **{"message.timestamp.type": "LogAppendTime"})
    produced = console_client.post(
        f"/topics/{topic}/messages", {"value": {"text": "v"}, "timestampMs": 1_000}
    )
    assert produced["timestampMs"] > 1_700_000_000_000
    (message,) = browse(console_client, topic)["messages"]
    assert (message["timestampMs"], message["timestampType"]) == (produced["timestampMs"], "append")


def test_value_is_encoded_with_the_registry_schema(registry_visitor, registry, broker, topic):
    registry.register(2001, json.dumps(CUSTOMER), subject=f"{topic}-value")
    registry.register(2002, PROTO, kind="PROTOBUF", subject=f"{topic}-key")
    create(registry_visitor, topic)
    value = {"id": 7, "city": "Köln", "since": "2024-02-29"}
    key = {"text": '{"order_id": "5"}', "format": "protobuf"}
    registry_visitor.post(
        f"/topics/{topic}/messages",
        {
            "key": key | {"schema": {"kind": "protobuf", "message": "shop.Order"}},
            "value": {"text": json.dumps(value), "format": "avro"},
        },
    )
    (record,) = consumed(broker, topic, 1)
    assert record.value() == wire_format.join(
        2001, avro(CUSTOMER, {"id": 7, "city": "Köln", "since": 19782})
    )
    assert record.key() == wire_format.join(2002, wire_format.join_indexes((1,), order(order_id=5)))
    (message,) = browse(registry_visitor, topic)["messages"]
    assert json.loads(message["value"]["text"]) == value
    assert json.loads(message["key"]["text"]) == {"order_id": "5"}


def test_invalid_or_too_large_input_is_not_written(console_client, topic):
    create(console_client, topic, **{"max.message.bytes": "2000"})
    avro_text = {"kind": "avro", "text": json.dumps(CUSTOMER)}
    for body in (
        {"value": {"text": "{", "format": "json"}},
        {"value": {"text": "0g", "format": "hex"}},
        {"value": {"text": "*", "format": "base64"}},
        {"value": {"text": "{}", "format": "avro"}},
        {"value": {"text": "{}", "format": "avro", "schema": avro_text}},
        {"value": {"text": "v"}, "timestampMs": -5},
        {"value": {"text": "v"}, "headers": [{"key": "h"}] * 101},
    ):
        response = console_client.request("POST", f"/topics/{topic}/messages", body)
        assert response.status == 400, (body, response.body)
    response = console_client.request("POST", f"/topics/{topic}/messages", {"partition": 7})
    assert response.status == 404
    large = console_client.request(
        "POST", f"/topics/{topic}/messages", {"value": {"text": "v" * 5000}}
    )
    assert (large.status, large.json["error"]) == (400, "invalid-request")
    assert "MESSAGE_TOO_LARGE" in large.json["message"]
    assert browse(console_client, topic)["messages"] == []
