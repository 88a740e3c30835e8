"""Brokers of a cluster: a killed one is reported, a drained one leaves silently."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from services import s3_server
from services.cluster import Cluster
from services.console import ConsoleClient, ConsoleProcess, ProblemError
from services.s3_server import broker_settings
from services.shell import Shell
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    """Shared, as it is slow to start; every test restores it."""
    if not s3_server.is_available():
        pytest.skip("no Go here to build an S3 server")
    settings = {"broker_lease_ttl_ms": "6000"}
    directory = tmp_path_factory.mktemp("brokers") / "cluster"
    with Cluster(directory, brokers=3, etcd_members=1, seed=0, **settings) as running:
        running.wait_until_serving()
        yield running


@pytest.fixture(scope="module")
def console(tmp_path_factory, cluster) -> Iterator[ConsoleProcess]:
    settings = broker_settings(cluster.s3.bucket) | {
        "bootstrap_servers": cluster.bootstrap,
        "control_servers": ",".join(control(cluster, each) for each in cluster.nodes),
        "etcd_endpoints": cluster.etcd.members[0].endpoint,
    }
    with ConsoleProcess(tmp_path_factory.mktemp("console"), **settings) as running:
        yield running
        assert "cluster poll failed" not in running.logged()


@pytest.fixture
def console_client(console) -> ConsoleClient:
    """A signed-in client of a healthy cluster."""
    console_client = console.client()
    wait_until(lambda: set(states(console_client).values()) == {"ready"}, "all brokers to be ready")
    return console_client


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid4()}"


@pytest.fixture
def kafscale(cluster):
    return Shell(cluster.bootstrap, control_servers=control(cluster, 1))


def control(cluster, broker_id):
    return cluster.nodes[broker_id].broker.control_address


def states(console_client):
    return {each["id"]: each["state"] for each in console_client.get("/brokers")}


def reasons(console_client):
    result = console_client.get("/overview")["health"]["reasons"]
    return {each["subject"]: each["sentence"] for each in result}


def numbers(partitions, topic):
    """The partitions of a topic."""
    return [each["partition"] for each in partitions if each["topic"] == topic]


def served(console_client, broker_id, topic):
    value = console_client.get(f"/brokers/{broker_id}")["partitions"]
    return numbers((each for each in value if each["state"] == "online"), topic)


def wait_for_state(console_client, broker_id, state):
    wait_until(
        lambda: states(console_client).get(broker_id) == state,
        f"broker {broker_id} to be {state}",
        seen=lambda: console_client.get("/overview"),
    )


def test_killed_broker_is_gone_until_it_is_back(cluster, console_client, kafscale, topic):
    kafscale("topic", "create", topic, "-p", "6")
    assert set(states(console_client)) == {1, 2, 3}
    wait_until(
        lambda: console_client.get("/overview")["metadata"]["state"] == "healthy",
        "the first check of etcd",
        seen=lambda: console_client.get("/overview")["metadata"],
    )
    metadata = console_client.get("/overview")["metadata"]
    assert metadata["kind"] == "etcd"
    assert metadata["databaseBytes"] > 0
    assert (metadata["memberCount"], metadata["readyCount"]) == (1, 1)
    assert console_client.get("/overview")["store"]["place"].startswith("s3://")

    cluster.nodes[2].kill()
    wait_for_state(console_client, 2, "unreachable")
    assert "does not respond" in reasons(console_client)["broker 2"]
    wait_for_state(console_client, 2, "gone")
    assert "without being drained" in reasons(console_client)["broker 2"]
    assert console_client.get("/overview")["health"]["state"] == "degraded"
    detail = console_client.get("/brokers/2")
    assert (detail["broker"]["state"], detail["partitions"]) == ("gone", [])
    wait_until(
        lambda: console_client.get("/overview")["totals"]["leaderlessCount"] == 0,
        "the others to take over",
    )

    cluster.nodes[2].start()
    wait_for_state(console_client, 2, "ready")
    wait_until(
        lambda: console_client.get("/overview")["health"]["state"] == "healthy",
        "all to be well",
        seen=lambda: console_client.get("/overview"),
    )


@pytest.mark.long
def test_drained_broker_leaves_without_a_warning(cluster, console_client, kafscale, topic):
    kafscale("topic", "create", topic, "-p", "6")
    kafscale.produce(topic, lines=map(str, range(100)))
    console_client.post("/rebalance")
    wait_until(lambda: len(served(console_client, 3, topic)) >= 1, "a share of the partitions")
    before = served(console_client, 3, topic)

    flushed = console_client.post("/brokers/3/flush")["partitions"]
    assert numbers(flushed, topic) == before

    result = console_client.post("/brokers/3/drain", {"deadlineSeconds": 60})
    assert (result["broker"], result["pending"]) == (3, [])
    assert numbers(result["drained"], topic) == before
    assert states(console_client)[3] == "draining"
    assert console_client.get("/brokers/3")["partitionTotal"] == 0
    cluster.nodes[3].terminate()
    wait_until(
        lambda: 3 not in states(console_client),
        "the broker to have left",
        seen=states(console_client),
    )
    assert "broker 3" not in reasons(console_client)

    cluster.nodes[3].start()
    wait_for_state(console_client, 3, "ready")
    moves = console_client.post("/rebalance")["moves"]
    assert all(each["done"] for each in moves)
    wait_until(
        lambda: console_client.get("/brokers/3")["partitionTotal"] >= 1,
        "its share of the partitions",
        seen=lambda: console_client.get("/brokers"),
    )


@pytest.mark.long
def test_hanging_broker_delays_no_request(cluster, console_client, topic):
    controller = console_client.get("/overview")[
        "controller"
    ]  # It creates topics, so it must keep running.
    hung = next(each for each in cluster.nodes if each != controller)
    cluster.nodes[hung].pause()
    try:
        wait_for_state(console_client, hung, "unreachable")
        kafscale = Shell(
            f"127.0.0.1:{cluster.nodes[controller].broker.port}",
            control_servers=control(cluster, controller),
        )
        kafscale("topic", "create", topic, "-p", "2")
        wait_until(
            lambda: console_client.get("/topics", search=topic)["total"] == 1,
            "the topic to be seen",
            seen=lambda: console_client.get("/overview"),
        )
        assert states(console_client)[controller] == "ready"
    finally:
        cluster.nodes[hung].resume()
    wait_for_state(console_client, hung, "ready")


def test_unknown_broker_is_not_found(console_client):
    for method, path, body, status in (
        ("GET", "/brokers/9", None, 404),
        ("POST", "/brokers/9/drain", {}, 404),
        ("POST", "/brokers/9/flush", None, 404),
        ("GET", "/brokers/first", None, 400),
        ("POST", "/brokers/1/drain", {"deadlineSeconds": 0}, 400),
    ):
        assert console_client.request(method, path, body).status == status, path
    with pytest.raises(ProblemError, match="the brokers are: 1, 2, 3"):
        console_client.get("/brokers/9")
