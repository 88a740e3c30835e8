"""Client metrics (KIP-714): what real clients push arrives at /metrics."""

import re
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from services import java
from services.broker import BrokerProcess
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(300)  # The first run downloads the tools.

with_java = pytest.mark.skipif(not java.is_available(), reason="no Java or no Maven here")
TOOLS = "org.apache.kafka.tools"
INTERVAL_MS = 500
LATENCY = "org.apache.kafka.producer.request.latency.avg"


def counted(broker, software) -> dict[str, float]:
    """The number of values of each gauge that clients of a software pushed."""
    series = re.findall(
        rf'^kafscale_client_gauge_samples_total{{software="{software}",metric="([^"]+)"}} (\S+)',
        broker.http("/metrics")[1],
        re.MULTILINE,
    )
    return {metric: float(count) for metric, count in series}


def tool(name, broker, *arguments):
    return java.run(f"{TOOLS}.{name}", "--bootstrap-server", broker.address, *arguments)


@pytest.fixture
def subscribed(start_broker) -> Iterator[BrokerProcess]:
    """A broker with a subscription that Kafka's tool created."""
    broker = start_broker()
    tool(
        "ClientMetricsCommand",
        broker,
        *("--alter", "--name", "latency", "--metrics", "org.apache.kafka.producer.request."),
        *("--interval", str(INTERVAL_MS), "--match", "client_id=measured.*"),
    )
    return broker


@with_java
def test_metrics_of_clients_arrive(subscribed):
    def produce(client_id):
        producer = Producer({"bootstrap.servers": subscribed.address, "client.id": client_id})
        until = time.monotonic() + 2 * INTERVAL_MS / 1000
        while time.monotonic() < until:
            producer.produce("orders", b"value")
            producer.poll(0.01)
        producer.flush(10)

    produce("other")
    assert not counted(subscribed, "confluent-kafka-python")
    produce("measured")
    wait_until(
        lambda: LATENCY in counted(subscribed, "confluent-kafka-python"), "the metric arrives"
    )
    java.run(
        f"{TOOLS}.ProducerPerformance",
        *("--topic", "orders", "--num-records", "200", "--record-size", "10"),
        *("--throughput", "100", "--producer-props", f"bootstrap.servers={subscribed.address}"),
        *("client.id=measured-java", "linger.ms=0"),
    )
    pushed = counted(subscribed, "apache-kafka-java")
    assert pushed[LATENCY] >= 2
    assert all(name.startswith("org.apache.kafka.producer.request.") for name in pushed)


@with_java
def test_tools_show_and_delete_subscriptions(subscribed):
    assert tool("ClientMetricsCommand", subscribed, "--list").split() == ["latency"]
    described = tool("ClientMetricsCommand", subscribed, "--describe", "--name", "latency")
    assert f"interval.ms={INTERVAL_MS}" in described
    assert "match=client_id=measured.*" in described
    configs = java.run(
        "kafka.admin.ConfigCommand",
        *("--bootstrap-server", subscribed.address, "--entity-type", "client-metrics"),
        *("--entity-name", "latency", "--alter", "--add-config", "interval.ms=1000"),
    )
    assert "Completed updating config for client-metric latency" in configs
    assert "interval.ms=1000" in tool("ClientMetricsCommand", subscribed, "--describe")
    tool("ClientMetricsCommand", subscribed, "--delete", "--name", "latency")
    assert not tool("ClientMetricsCommand", subscribed, "--list").split()
