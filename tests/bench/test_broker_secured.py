"""The cost of security: one producer with plaintext, with SASL, and with SASL over TLS.

One broker with ACLs, which apply to every listener. `kafka-producer-perf-test` sends records of
1 KiB to 6 partitions with acks=all. CPU is the time of the broker only.
"""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from bench.process_usage import cpu_seconds
from bench.producer_perf import BY_DEFAULT, LARGE, RECORD_BYTES, Batching, produce
from services import java
from services.acls import Acls, acl_binding
from services.client_config import ClientConfig
from services.secured_broker import ADMIN, SecuredBroker

pytestmark = [
    pytest.mark.bench,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not java.is_available(), reason="the tool needs Java and Maven"),
]

PARTITIONS = 6
RECORDS = 150_000
ROUNDS = 3
USER = "alice"
TOPIC = "measured"
CLEAR, LOGGED_IN, ENCRYPTED = "in the clear", "SCRAM", "SCRAM over TLS"


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with SecuredBroker(tmp_path_factory.mktemp("secured"), users=(USER,)) as running:
        running.add_scram_users(USER)
        admin = AdminClient(running.plain(ADMIN).librdkafka())
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(30)
        Acls(admin).add(
            acl_binding(f"User:{USER}", "WRITE", topic=TOPIC),
            acl_binding("User:ANONYMOUS", "WRITE", topic=TOPIC),
        )
        yield running


def figures(
    broker: SecuredBroker, config: ClientConfig, batching: Batching, records: int, directory: Path
):
    before = cpu_seconds(broker.process_id)
    report = produce(
        config.address, TOPIC, records, batching=batching, config=config.java(directory)
    )
    used = cpu_seconds(broker.process_id) - before
    return {
        "MB/s": report.megabytes_per_second,
        "CPU-s/GB": used / (records * RECORD_BYTES / 1e9),
        **report.latencies_ms,
    }


@pytest.mark.parametrize("batching", [BY_DEFAULT, LARGE], ids=lambda batching: batching.name)
def test_produce_throughput_by_security_protocol(comparisons, scaled, broker, batching, tmp_path):
    comparison = comparisons.new(f"what security costs a producer, {batching.name}", CLEAR)
    records = scaled(RECORDS)
    configs = {
        CLEAR: broker.anonymous(),
        LOGGED_IN: broker.inside(USER),
        ENCRYPTED: broker.scram(USER),
    }
    for _ in range(ROUNDS):
        for name, config in configs.items():
            comparison.add(name, figures(broker, config, batching, records, tmp_path))
