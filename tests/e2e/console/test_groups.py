"""Consumer groups over the API: list, describe, reset and delete."""

from contextlib import contextmanager
from urllib.parse import quote
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer

from services.waiting import wait_until

pytestmark = pytest.mark.timeout(60)

FIRST_MS = 1_700_000_000_000
KEPT = {"retention.ms": "-1"}
"""Records have old timestamps, and must not be deleted during a test."""


@pytest.fixture
def group() -> str:
    """A unique name with characters that need escaping in paths."""
    return f"billing/{uuid4()} & söhne?"


@pytest.fixture
def read_topic(console_client, broker, topic, group) -> str:
    """A topic with 10 and 6 records that a group without members has committed."""
    console_client.post("/topics", {"name": topic, "partitionCount": 2, "configs": KEPT})
    produce(broker, topic, 0, range(10))
    produce(broker, topic, 1, range(6))
    with group_member(broker, topic, group, 16):
        pass
    return topic


def test_group_has_members_and_lag(console_client, broker, topic, group):
    console_client.post("/topics", {"name": topic, "partitionCount": 2, "configs": KEPT})
    produce(broker, topic, 0, range(10))
    with group_member(broker, topic, group, 10):
        produce(broker, topic, 1, range(3))
        produce(broker, topic, 0, range(2))
        value = console_client.get(path_of(group))
        assert (value["group"], value["state"], value["type"]) == (group, "Stable", "classic")
        (member,) = value["members"]
        assert member["clientId"] == "reader"
        assert member["topics"] == [topic]
        assert member["assignment"] == {topic: [0, 1]}
        assert value["lag"] == 2
        first, second = value["offsets"]
        assert (first["committedOffset"], first["endOffset"], first["lag"]) == (10, 12, 2)
        assert (second["committedOffset"], second["endOffset"], second["lag"]) == (None, 3, None)
        assert first["memberId"] == second["memberId"] == member["memberId"]

        wait_until(lambda: listed(console_client, group), "the group to be polled")
        (row,) = console_client.get("/groups", search=group.upper(), state="stable")["items"]
        assert (row["group"], row["memberCount"], row["topics"]) == (group, 1, [topic])
        assert console_client.get("/groups", search=group, state="Empty")["total"] == 0
        wait_until(lambda: listed(console_client, group)[0]["lag"] == 2, "its lag")
        wait_until(lambda: console_client.get(path_of(group))["lagHistory"], "a history of its lag")
    wait_until(lambda: listed(console_client, group)[0]["state"] == "Empty", "its end to be seen")


@pytest.mark.parametrize(
    ("to", "after"),
    [
        ({"kind": "earliest"}, [0, 0]),
        ({"kind": "latest"}, [10, 6]),
        ({"kind": "current"}, [10, 6]),
        ({"kind": "offset", "number": 8}, [8, 6]),
        ({"kind": "shift", "number": -4}, [6, 2]),
        ({"kind": "time", "number": FIRST_MS + 5}, [5, 5]),
    ],
)
def test_reset_is_planned_before_it_is_executed(console_client, read_topic, group, to, after):
    path = f"{path_of(group)}/reset"
    planned = console_client.post(path, {"to": to})
    assert planned["executed"] is False
    assert [each["before"] for each in planned["rows"]] == [10, 6]
    assert [each["after"] for each in planned["rows"]] == after
    assert committed(console_client, group) == {(read_topic, 0): 10, (read_topic, 1): 6}

    done = console_client.post(path, {"to": to, "execute": True})
    assert done == planned | {"executed": True}
    assert committed(console_client, group) == {
        (read_topic, 0): after[0],
        (read_topic, 1): after[1],
    }


def test_reset_of_some_partitions_notes_clamped_offsets(console_client, read_topic, group):
    body = {"to": {"kind": "offset", "number": 99}, "topics": {read_topic: [1]}, "execute": True}
    (row,) = console_client.post(f"{path_of(group)}/reset", body)["rows"]
    assert (row["partition"], row["after"], row["endOffset"]) == (1, 6, 6)
    assert row["note"] == "99 is after the end"
    assert committed(console_client, group)[read_topic, 0] == 10


def test_group_with_members_is_neither_reset_nor_deleted(console_client, broker, topic, group):
    console_client.post("/topics", {"name": topic, "configs": KEPT})
    produce(broker, topic, 0, range(3))
    with group_member(broker, topic, group, 3):
        for method, path, body in (
            ("POST", "/reset", {"to": {"kind": "earliest"}, "execute": True}),
            ("DELETE", "", {"confirm": group}),
        ):
            response = console_client.request(method, path_of(group) + path, body)
            assert (response.status, response.json["error"]) == (409, "conflict")
            assert "member" in response.json["message"]
            assert "kafscale group" not in response.json["message"]
        assert committed(console_client, group) == {(topic, 0): 3}


@pytest.mark.usefixtures("read_topic")
def test_group_is_deleted_after_confirmation(console_client, group):
    response = console_client.request("DELETE", path_of(group), {"confirm": ""})
    assert response.status == 400
    assert console_client.get(path_of(group))["state"] == "Empty"
    console_client.delete(path_of(group), {"confirm": group})
    assert listed(console_client, group) == []
    assert console_client.request("GET", path_of(group)).status == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (("GET", "", None), 404),
        (("DELETE", "", {"confirm": "{group}"}), 404),
        (("POST", "/reset", {"to": {"kind": "earliest"}}), 400),
        (("POST", "/reset", {"to": {"kind": "earliest"}, "topics": {}}), 400),
        (("POST", "/reset", {"to": {"kind": "earliest"}, "topics": {"absent": []}}), 404),
        (("POST", "/reset", {"to": {"kind": "offset", "number": -1}}), 400),
        (("POST", "/reset", {"to": {"kind": "yesterday"}}), 400),
    ],
)
def test_invalid_requests_are_rejected_with_a_message(console_client, group, body, status):
    method, path, body = body
    if body and "confirm" in body:
        body = {"confirm": group}
    response = console_client.request(method, path_of(group) + path, body)
    assert response.status == status
    assert response.json["message"]
    assert "kafscale " not in response.json["message"]
    assert "--" not in response.json["message"].replace(group, "")


def path_of(group):
    return f"/groups/{quote(group, safe='')}"


def listed(console_client, group):
    return console_client.get("/groups", search=group)["items"]


def committed(console_client, group):
    return {
        (each["topic"], each["partition"]): each["committedOffset"]
        for each in console_client.get(path_of(group))["offsets"]
        if each["committedOffset"] is not None
    }


@contextmanager
def group_member(broker, topic, group, count):
    """A member that has read and committed `count` records."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "client.id": "reader",
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])
        read = []
        wait_until(
            lambda: read.extend(consumer.consume(count, 0.5)) or len(read) == count, "the records"
        )
        consumer.commit(asynchronous=False)
        yield
    finally:
        consumer.close()


def produce(broker, topic, partition, numbers):
    """Records with timestamps a millisecond apart."""
    producer = Producer({"bootstrap.servers": broker.address})
    for number in numbers:
        producer.produce(topic, b"value", partition=partition, timestamp=FIRST_MS + number)
    assert producer.flush(30) == 0
