"""Brokers of a cluster: a killed one is reported, a drained one leaves silently."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from services import s3_server
from services.cluster import Cluster
from services.console import ConsoleProcess, ProblemError, Visitor
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
def visitor(console) -> Visitor:
    """A signed-in visitor of a healthy cluster."""
    visitor = console.visitor()
    wait_until(lambda: set(states(visitor).values()) == {"ready"}, "all brokers to be ready")
    return visitor


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid4()}"


@pytest.fixture
def kafscale(cluster):
    return Shell(cluster.bootstrap, control_servers=control(cluster, 1))


def control(cluster, broker_id):
    return f"127.0.0.1:{cluster.nodes[broker_id].broker.metrics_port}"


def states(visitor):
    return {each["id"]: each["state"] for each in visitor.get("/brokers")}


def reasons(visitor):
    result = visitor.get("/overview")["health"]["reasons"]
    return {each["subject"]: each["sentence"] for each in result}


def numbers(partitions, topic):
    """The partitions of a topic."""
    return [each["partition"] for each in partitions if each["topic"] == topic]


def served(visitor, broker_id, topic):
    found = visitor.get(f"/brokers/{broker_id}")["partitions"]
    return numbers((each for each in found if each["state"] == "online"), topic)


def wait_for_state(visitor, broker_id, state):
    wait_until(
        lambda: states(visitor).get(broker_id) == state,
        f"broker {broker_id} to be {state}",
        seen=lambda: visitor.get("/overview"),
    )


def test_killed_broker_is_gone_until_it_is_back(cluster, visitor, kafscale, topic):
    kafscale("topic", "create", topic, "-p", "6")
    assert set(states(visitor)) == {1, 2, 3}
    wait_until(
        lambda: visitor.get("/overview")["metadata"]["state"] == "healthy",
        "the first check of etcd",
        seen=lambda: visitor.get("/overview")["metadata"],
    )
    metadata = visitor.get("/overview")["metadata"]
    assert metadata["kind"] == "etcd"
    assert metadata["databaseBytes"] > 0
    assert (metadata["memberCount"], metadata["readyCount"]) == (1, 1)
    assert visitor.get("/overview")["store"]["place"].startswith("s3://")

    cluster.nodes[2].kill()
    wait_for_state(visitor, 2, "unreachable")
    assert "does not respond" in reasons(visitor)["broker 2"]
    wait_for_state(visitor, 2, "gone")
    assert "gone" in reasons(visitor)["broker 2"]
    assert visitor.get("/overview")["health"]["state"] == "degraded"
    detail = visitor.get("/brokers/2")
    assert (detail["broker"]["state"], detail["partitions"]) == ("gone", [])
    wait_until(
        lambda: visitor.get("/overview")["totals"]["leaderlessCount"] == 0,
        "the others to take over",
    )

    cluster.nodes[2].start()
    wait_for_state(visitor, 2, "ready")
    wait_until(
        lambda: visitor.get("/overview")["health"]["state"] == "healthy",
        "all to be well",
        seen=lambda: visitor.get("/overview"),
    )


def test_drained_broker_leaves_without_a_warning(cluster, visitor, kafscale, topic):
    kafscale("topic", "create", topic, "-p", "6")
    kafscale.produce(topic, lines=map(str, range(100)))
    visitor.post("/rebalance")
    wait_until(lambda: len(served(visitor, 3, topic)) >= 1, "a share of the partitions")
    before = served(visitor, 3, topic)

    flushed = visitor.post("/brokers/3/flush")["partitions"]
    assert numbers(flushed, topic) == before

    result = visitor.post("/brokers/3/drain", {"deadlineSeconds": 60})
    assert (result["broker"], result["pending"]) == (3, [])
    assert numbers(result["drained"], topic) == before
    assert states(visitor)[3] == "draining"
    assert visitor.get("/brokers/3")["partitionTotal"] == 0
    cluster.nodes[3].terminate()
    wait_until(lambda: 3 not in states(visitor), "the broker to have left", seen=states(visitor))
    assert "broker 3" not in reasons(visitor)

    cluster.nodes[3].start()
    wait_for_state(visitor, 3, "ready")
    moves = visitor.post("/rebalance")["moves"]
    assert all(each["done"] for each in moves)
    wait_until(
        lambda: visitor.get("/brokers/3")["partitionTotal"] >= 1,
        "its share of the partitions",
        seen=lambda: visitor.get("/brokers"),
    )


@pytest.mark.long
def test_hanging_broker_delays_no_request(cluster, visitor, topic):
    controller = visitor.get("/overview")[
        "controller"
    ]  # It creates topics, so it must keep running.
    hung = next(each for each in cluster.nodes if each != controller)
    cluster.nodes[hung].pause()
    try:
        wait_for_state(visitor, hung, "unreachable")
        kafscale = Shell(
            f"127.0.0.1:{cluster.nodes[controller].broker.port}",
            control_servers=control(cluster, controller),
        )
        kafscale("topic", "create", topic, "-p", "2")
        wait_until(
            lambda: visitor.get("/topics", search=topic)["total"] == 1,
            "the topic to be seen",
            seen=lambda: visitor.get("/overview"),
        )
        assert states(visitor)[controller] == "ready"
    finally:
        cluster.nodes[hung].resume()
    wait_for_state(visitor, hung, "ready")


def test_unknown_broker_is_not_found(visitor):
    for method, path, body, status in (
        ("GET", "/brokers/9", None, 404),
        ("POST", "/brokers/9/drain", {}, 404),
        ("POST", "/brokers/9/flush", None, 404),
        ("GET", "/brokers/first", None, 400),
        ("POST", "/brokers/1/drain", {"deadlineSeconds": 0}, 400),
    ):
        assert visitor.ask(method, path, body).status == status, path
    with pytest.raises(ProblemError, match="the brokers are: 1, 2, 3"):
        visitor.get("/brokers/9")
