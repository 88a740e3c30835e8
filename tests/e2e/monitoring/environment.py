"""A live environment for Prometheus: a broker with traffic, an operator, and the pipeline.

The broker is a process with real producers and consumers, so that rates are not zero. The metrics
of the operator and the pipeline are rendered by their own code, with values of a healthy system.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from confluent_kafka import Consumer, Producer

from kafscale.observability.metrics.jobs import LastRun, PipelineStatus, exposition
from kafscale.observability.metrics.metric import CONTENT_TYPE
from kafscale.observability.metrics.operator import OperatorMetrics, SnapshotMetrics
from services.broker import HOST, BrokerProcess
from services.prometheus import PrometheusServer, Target, prometheus
from services.shell import Shell
from services.waiting import wait_until

NAMESPACE, CLUSTER = "shop", "production"
TOPIC, GROUP, JOB = "orders", "billing", "lake"
PAUSE_S = 0.1
JOIN_S_MAX = 30


@dataclass(frozen=True)
class Environment:
    """The broker and the Prometheus that scrapes it."""

    broker: BrokerProcess
    prometheus: PrometheusServer


@contextmanager
def environment(directory: Path) -> Iterator[Environment]:
    """Run the environment inside the block, once all targets have been scraped."""
    with ExitStack() as stack:
        broker = stack.enter_context(
            BrokerProcess(directory / "broker", group_initial_rebalance_delay_ms="0")
        )
        Shell(broker.address)("topic", "create", TOPIC, "-p", "2")
        operator = _operator()
        operator_port = stack.enter_context(_serving(operator.exposition))
        pipeline_port = stack.enter_context(_serving(_pipeline))
        stack.enter_context(_repeated(_traffic(stack, broker.address)))
        stack.enter_context(
            _repeated(lambda: operator.reconciled("KafscaleCluster", 0.2, succeeded=True))
        )
        targets = (
            Target("brokers", broker.metrics_port, _labels("broker-headless", "broker-0")),
            Target("operator", operator_port, _labels("operator", "operator-0"), honor_labels=True),
            Target("console", pipeline_port, _labels("console", "console-0"), honor_labels=True),
        )
        server = stack.enter_context(prometheus(directory / "prometheus", targets))
        wait_until(
            lambda: [each["health"] for each in server.targets()] == ["up"] * len(targets),
            "all targets to be scraped",
            seen=server.targets,
        )
        yield Environment(broker, server)


def _labels(service: str, pod: str) -> dict[str, str]:
    """Return the labels that ServiceMonitors add."""
    return {
        "namespace": NAMESPACE,
        "cluster": CLUSTER,
        "service": f"{CLUSTER}-{service}",
        "pod": f"{CLUSTER}-{pod}",
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _operator() -> OperatorMetrics:
    metrics = OperatorMetrics(_now_ms)
    metrics.is_leader = True
    cluster = metrics.cluster(NAMESPACE, CLUSTER)
    cluster.brokers_ready = cluster.brokers_desired = 1
    cluster.topics = 1
    cluster.etcd_members_ready = cluster.etcd_members_desired = 3
    cluster.etcd_database_bytes = 20_480
    snapshots = cluster.snapshots = SnapshotMetrics()
    snapshots.newest_at_ms, snapshots.size_bytes = _now_ms() - 60_000, 4096
    snapshots.succeeded, snapshots.is_accessible, snapshots.duration_seconds = True, True, 1.5
    return metrics


def _pipeline() -> bytes:
    now_ms = _now_ms()
    run = LastRun(
        job=JOB,
        topic=TOPIC,
        ended_at_ms=now_ms - 60_000,
        succeeded=True,
        duration_seconds=12.5,
        records=1000,
        newest_record_at_ms=now_ms - 90_000,
    )
    return exposition(PipelineStatus.of(now_ms, [run]))


def _traffic(stack: ExitStack, address: str) -> Callable[[], None]:
    """Return a function that produces and consumes some records."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500,
        }
    )
    stack.callback(consumer.close)
    consumer.subscribe([TOPIC])

    def once() -> None:
        for number in range(10):
            producer.produce(TOPIC, value=b"value %d" % number)
        producer.flush(10)
        consumer.consume(20, timeout=PAUSE_S)

    return once


@contextmanager
def _repeated(once: Callable[[], object]) -> Iterator[None]:
    """Call a function repeatedly in a thread."""
    is_over = threading.Event()

    def run() -> None:
        while not is_over.wait(PAUSE_S):
            once()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(JOIN_S_MAX)


@contextmanager
def _serving(metrics: Callable[[], bytes]) -> Iterator[int]:
    """Serve metrics over HTTP; return the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = metrics()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Do not log scrapes."""

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join(JOIN_S_MAX)
