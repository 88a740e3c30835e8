"""Segments over the API, listed from the object store."""

import pytest
from confluent_kafka import Producer

from services.console import ConsoleProcess
from services.s3_server import broker_settings

pytestmark = pytest.mark.timeout(60)


def test_segments_and_wal_tail(console_client, broker, topic):
    """Three segments are rolled, newest first; the WAL has the rest.

    The number of WAL objects is not compared: it is unknown while the namespace has many of them,
    which other tests may have written to this broker.
    """
    console_client.post("/topics", {"name": topic, "partitionCount": 2})
    for _ in range(3):
        produce(broker, topic, 10)
        console_client.post(f"/topics/{topic}/flush", {})
    produce(broker, topic, 4)

    page = console_client.get(f"/topics/{topic}/segments", partition=1)
    files = broker.objects(f"objects/default/{topic}/1/*.kfs")
    assert page["total"] == len(files) == 3
    assert page["sizeBytes"] == sum(path.stat().st_size for path in files)
    assert bounds(page) == [(20, 29), (10, 19), (0, 9)]
    assert all(each["hasIndex"] and each["createdAtMs"] > 0 for each in page["items"])
    assert sorted(each["key"].rpartition("/")[2] for each in page["items"]) == [
        path.name for path in files
    ]
    wal = page["wal"]
    assert (wal["fromOffset"], wal["toOffset"], wal["recordCount"]) == (30, 34, 4)


def test_pages_of_segments(console_client, broker, topic):
    console_client.post("/topics", {"name": topic, "partitionCount": 2})
    for _ in range(3):
        produce(broker, topic, 1)
        console_client.post(f"/topics/{topic}/flush", {"partitions": [1]})
    first = console_client.get(f"/topics/{topic}/segments", partition=1, size=2)
    second = console_client.get(f"/topics/{topic}/segments", partition=1, size=2, page=2)
    assert (bounds(first), bounds(second)) == ([(2, 2), (1, 1)], [(0, 0)])
    assert first["total"] == second["total"] == 3
    assert second["page"] == 2


def test_empty_partition_has_no_segments(console_client, topic):
    console_client.post("/topics", {"name": topic})
    page = console_client.get(f"/topics/{topic}/segments")
    assert (page["total"], page["sizeBytes"], page["items"]) == (0, 0, [])
    assert page["wal"] == {
        "fromOffset": 0,
        "toOffset": 0,
        "recordCount": 0,
        "objectCount": 0,
        "sizeBytes": 0,
    }


def test_recreated_topic_has_no_old_segments(console_client, broker, topic):
    """Keys contain topic names; objects of a deleted topic are deleted before the name is free."""
    for count in (5, 2):
        console_client.post("/topics", {"name": topic, "partitionCount": 2})
        produce(broker, topic, count)
        page = console_client.get(f"/topics/{topic}/segments", partition=1)
        assert (page["total"], page["wal"]["recordCount"]) == (0, count)
        console_client.post(f"/topics/{topic}/flush", {})
        assert bounds(console_client.get(f"/topics/{topic}/segments", partition=1)) == [
            (0, count - 1)
        ]
        console_client.delete(f"/topics/{topic}", {"confirm": topic})


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("partition=7", 404),
        ("partition=-1", 404),
        ("partition=one", 400),
        ("size=0", 400),
        ("size=501", 400),
        ("page=0", 400),
    ],
)
def test_missing_partition_is_reported(console_client, topic, query, status):
    console_client.post("/topics", {"name": topic})
    response = console_client.request("GET", f"/topics/{topic}/segments?{query}")
    assert response.status == status
    assert response.json["message"]


def test_segments_of_a_bucket(s3, start_broker, tmp_path, topic):
    broker = start_broker(**broker_settings(s3.bucket))
    with ConsoleProcess(tmp_path / "console", broker) as console:
        console_client = console.client()
        console_client.post("/topics", {"name": topic, "partitionCount": 2})
        produce(broker, topic, 10)
        console_client.post(f"/topics/{topic}/flush", {})
        produce(broker, topic, 3)
        page = console_client.get(f"/topics/{topic}/segments", partition=1)
        assert bounds(page) == [(0, 9)]
        assert (page["wal"]["recordCount"], page["wal"]["objectCount"]) == (3, 1)
        assert page["wal"]["sizeBytes"] > 0


def bounds(page):
    return [(each["baseOffset"], each["lastOffset"]) for each in page["items"]]


def produce(broker, topic, count):
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(count):
        producer.produce(topic, f"value {number}".encode(), partition=1)
    assert producer.flush(30) == 0
