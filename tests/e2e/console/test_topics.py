"""Topics over the API: list, create, alter, add partitions, flush and delete."""

import pytest
from confluent_kafka import Consumer, Producer

from services.console import ConsoleProcess
from services.process import free_port
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(60)


def test_topic_lifecycle(console_client, topic):
    """Every change is listed at once, without waiting for the next poll."""
    created = console_client.post(
        "/topics", {"name": topic, "partitionCount": 2, "configs": {"retention.ms": "7200000"}}
    )
    assert (created["name"], created["partitionCount"], created["leaderlessCount"]) == (topic, 2, 0)
    (listed,) = console_client.get("/topics", search=topic)["items"]
    assert (listed["topicId"], listed["partitionCount"]) == (created["topicId"], 2)

    grown = console_client.post(f"/topics/{topic}/partitions", {"partitionCount": 3})
    assert [each["partition"] for each in grown["partitions"]] == [0, 1, 2]
    assert console_client.get("/topics", search=topic)["items"][0]["partitionCount"] == 3

    console_client.delete(f"/topics/{topic}", {"confirm": topic})
    assert console_client.get("/topics", search=topic)["items"] == []
    assert problem(console_client, "GET", f"/topics/{topic}")[0] == (404, "not-found")


def test_partitions_have_their_offsets(console_client, broker, topic):
    console_client.post("/topics", {"name": topic, "partitionCount": 2})
    produce(broker, topic, 10, partition=1)
    flushed = console_client.post(f"/topics/{topic}/flush", {"partitions": [1]})
    assert flushed == {"partitions": [{"topic": topic, "partition": 1}]}
    produce(broker, topic, 4, partition=1)

    value = console_client.get(f"/topics/{topic}")
    empty, full = value["partitions"]
    assert (empty["highWatermark"], empty["recordCount"], empty["sizeBytes"]) == (0, 0, 0)
    assert full["sizeBytes"] > 0
    about = {name: full[name] for name in ("state", "startOffset", "rolledOffset", "recordCount")}
    assert about == {"state": "online", "startOffset": 0, "rolledOffset": 10, "recordCount": 14}
    assert full["highWatermark"] == full["endOffset"] == 14
    assert full["leader"] == empty["leader"] is not None
    assert value["topic"]["recordCount"] == 14
    assert value["topic"]["sizeBytes"] == full["sizeBytes"]


def test_configs_have_defaults_and_documentation(console_client, topic):
    console_client.post("/topics", {"name": topic})
    before = configs(console_client, topic)["retention.ms"]
    assert before["isSet"] is False
    assert before["value"] == before["default"]
    assert before["type"] == "long"
    assert "segments are deleted" in before["documentation"]

    body = {"set": {"retention.ms": "7200000", "cleanup.policy": "compact"}}
    response = console_client.put(f"/topics/{topic}/configs", body)
    assert response == list(configs(console_client, topic).values())
    after = configs(console_client, topic)["retention.ms"]
    assert after == before | {"value": "7200000", "isSet": True}

    console_client.put(f"/topics/{topic}/configs", {"delete": ["retention.ms"]})
    assert configs(console_client, topic)["retention.ms"] == before
    assert configs(console_client, topic)["cleanup.policy"]["value"] == "compact"


def test_list_is_searched_sorted_and_paged(console_client, broker, topic):
    names = [f"{topic}-{letter}" for letter in "abc"]
    for count, name in enumerate(names, 1):
        console_client.post("/topics", {"name": name, "partitionCount": count})
    produce(broker, names[1], 5, partition=0)

    def listed(**query):
        page = console_client.get("/topics", search=topic.upper(), **query)
        assert page["total"] == 3
        return [each["name"].removeprefix(topic) for each in page["items"]]

    assert listed() == ["-a", "-b", "-c"]
    assert listed(order="desc") == ["-c", "-b", "-a"]
    assert listed(sort="partitions", order="desc", size=2) == ["-c", "-b"]
    assert listed(sort="partitions", order="desc", size=2, page=2) == ["-a"]
    wait_until(lambda: listed(sort="records", order="desc")[0] == "-b", "the records to be polled")


def test_consumers_of_a_topic_with_lag(console_client, broker, topic):
    console_client.post("/topics", {"name": topic, "partitionCount": 2})
    produce(broker, topic, 5, partition=0)
    produce(broker, topic, 3, partition=1)
    assert console_client.get(f"/topics/{topic}/consumers") == []
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": f"group-{topic}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])
        read = []
        wait_until(lambda: read.extend(consumer.consume(8, 0.5)) or len(read) == 8, "the records")
        consumer.commit(asynchronous=False)
        produce(broker, topic, 2, partition=1)
        wait_until(
            lambda: console_client.get("/groups", search=topic)["total"], "the group to be polled"
        )
        assert console_client.get(f"/topics/{topic}/consumers") == [
            {
                "group": f"group-{topic}",
                "state": "Stable",
                "memberCount": 1,
                "lag": 2,
                "lagByPartition": {"0": 0, "1": 2},
            }
        ]
    finally:
        consumer.close()


def test_topic_is_deleted_only_after_confirmation(console_client, topic):
    console_client.post("/topics", {"name": topic})
    response, message = problem(
        console_client, "DELETE", f"/topics/{topic}", {"confirm": topic[:-1]}
    )
    assert response == (400, "invalid-request")
    assert "repeat its name" in message
    assert console_client.get(f"/topics/{topic}")["topic"]["name"] == topic


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("DELETE", "", {"confirm": "{name}"}),
        ("GET", "/configs", None),
        ("PUT", "/configs", {"set": {"retention.ms": "1"}}),
        ("POST", "/partitions", {"partitionCount": 3}),
        ("GET", "/segments", None),
        ("GET", "/consumers", None),
        ("POST", "/flush", {}),
    ],
)
def test_requests_for_a_missing_topic_return_404(console_client, topic, method, path, body):
    if body and "confirm" in body:
        body = {"confirm": topic}
    response, message = problem(console_client, method, f"/topics/{topic}{path}", body)
    assert response == (404, "not-found")
    assert topic in message
    assert "kafscale topic" not in message
    assert console_client.get("/topics", search=topic)["total"] == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (("", "POST", {"name": "no/name"}), 400),
        (("", "POST", {"name": "_wal"}), 400),
        (("", "POST", {"name": "{topic}"}), 409),
        (("", "POST", {"name": "x", "partitionCount": 0}), 400),
        (("", "POST", {"name": "x", "partitionCount": 10**9}), 403),
        (("", "POST", {"name": "x", "partitions": 3}), 400),
        (("", "POST", {"name": "x", "configs": {"color": "red"}}), 400),
        (("/{topic}/partitions", "POST", {"partitionCount": 1}), 400),
        (("/{topic}/configs", "PUT", {}), 400),
        (("/{topic}/configs", "PUT", {"set": {"color": "red"}}), 400),
        (("/{topic}/configs", "PUT", {"set": {"retention.ms": "long"}}), 400),
        (("/{topic}/configs", "PUT", {"set": {"a": "1"}, "delete": ["a"]}), 400),
        (("/{topic}/flush", "POST", {"topic": "other"}), 400),
        (("/{topic}/flush", "POST", {"partitions": [7]}), 404),
        (("?size=501", "GET", None), 400),
        (("?page=0", "GET", None), 400),
        (("?sort=color", "GET", None), 400),
        (("?colour=red", "GET", None), 400),
    ],
)
def test_invalid_requests_are_rejected_with_a_message(console_client, existing_topic, body, status):
    path, method, body = body
    if body and body.get("name") == "{topic}":
        body = {"name": existing_topic}
    response, message = problem(
        console_client, method, "/topics" + path.format(topic=existing_topic), body
    )
    assert response[0] == status, message
    assert message
    assert console_client.get("/topics", search="no/name")["total"] == 0


def test_unreachable_owner_leaves_only_start_and_end_offsets(broker, tmp_path, topic):
    """Kafka's protocol is reachable, the control plane is not."""
    produce(broker, topic, 5, partition=0)
    unreachable = f"127.0.0.1:{free_port()}"
    with ConsoleProcess(tmp_path, broker, control_servers=unreachable) as console:
        console_client = console.client()
        (partition,) = console_client.get(f"/topics/{topic}")["partitions"]
        assert partition["state"] == "unknown"
        assert (partition["startOffset"], partition["highWatermark"]) == (0, 5)
        assert partition["rolledOffset"] is partition["sizeBytes"] is None
        assert console_client.get(f"/topics/{topic}/segments")["wal"] is None
        response, message = problem(console_client, "POST", f"/topics/{topic}/flush", {})
        assert response == (503, "unavailable")
        assert unreachable in message


def test_segments_need_the_broker_directory(broker, tmp_path, topic):
    produce(broker, topic, 1, partition=0)
    elsewhere = tmp_path / "elsewhere"
    with ConsoleProcess(tmp_path, broker, data_dir=str(elsewhere)) as console:
        response, message = problem(console.client(), "GET", f"/topics/{topic}/segments")
        assert response == (409, "conflict")
        assert str(elsewhere) in message
        assert not elsewhere.exists()


@pytest.fixture(scope="module")
def existing_topic(console):
    """A topic that no test changes."""
    name = "taken"
    console.client().post("/topics", {"name": name, "partitionCount": 2})
    return name


def problem(console_client, method, path, body=None):
    """The status, error code and message of a failed request."""
    response = console_client.request(method, path, body)
    assert response.status >= 400, response
    return (response.status, response.json["error"]), response.json["message"]


def configs(console_client, topic):
    return {each["name"]: each for each in console_client.get(f"/topics/{topic}/configs")}


def produce(broker, topic, count, *, partition):
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(count):
        producer.produce(topic, f"value {number}".encode(), partition=partition)
    assert producer.flush(30) == 0
