"""MirrorMaker in Kafka Connect, with exactly-once support for source connectors (KIP-618)."""

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from e2e.transactions.numbered_records import create, fill
from services import java, java_programs
from services.committed_records import Values, read_values
from services.process import free_port
from services.supervised import SupervisedProcess
from services.waiting import wait_until

pytestmark = [
    pytest.mark.timeout(600),  # The first run downloads the jars.
    pytest.mark.skipif(not java.is_available(), reason="no Java or no Maven here"),
]

MIRRORED = "A.input"
RECORDS = 6000
DONE_S_MAX = 180
CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"


def worker_properties(address: str, port: int) -> str:
    settings = {
        "bootstrap.servers": address,
        "group.id": "connect",
        "config.storage.topic": "connect-configs",
        "offset.storage.topic": "connect-offsets",
        "status.storage.topic": "connect-status",
        "config.storage.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "key.converter": CONVERTER,
        "value.converter": CONVERTER,
        "exactly.once.source.support": "enabled",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "scheduled.rebalance.max.delay.ms": "1000",
        "listeners": f"http://127.0.0.1:{port}",
    }
    return "".join(f"{name}={text}\n" for name, text in settings.items())


def connector(address: str) -> dict[str, str]:
    return {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "tasks.max": "1",
        "exactly.once.support": "required",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": address,
        "target.cluster.bootstrap.servers": address,
        "topics": "input",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
        # Without it, the connector does not support exactly once.
        "source.consumer.isolation.level": "read_committed",
        # Small polls, each of which is a transaction, so that kills meet open ones.
        "source.consumer.max.poll.records": "20",
    }


def is_created(port: int, config: dict[str, str]) -> bool:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/connectors/mirror/config",
        data=json.dumps(config).encode(),
        headers={"Content-Type": "application/json"},
        method="PUT",
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310 - our own.
            return bool(response.status in {200, 201})
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 400:
                pytest.fail(error.read().decode())
        return False
    except OSError:
        return False


@pytest.mark.long
def test_topic_is_mirrored_exactly_once(start_server, tmp_path: Path):
    """The worker is killed, then the broker."""
    server = start_server()
    create(server.address, "input", MIRRORED)
    sent = fill(server.address, "input", RECORDS)
    port = free_port()
    properties = tmp_path / "worker.properties"
    properties.write_text(worker_properties(server.address, port))
    command = java_programs.class_command(
        "org.apache.kafka.connect.cli.ConnectDistributed", str(properties)
    )

    def mirrored() -> Values:
        return read_values(server.address, MIRRORED)

    def count() -> int:
        return sum(map(len, mirrored().values()))

    with SupervisedProcess(command, tmp_path / "connect.log") as worker:

        def wait_for(records: int) -> None:
            wait_until(
                lambda: count() >= records,
                f"{records} records",
                seconds_max=DONE_S_MAX,
                seen=worker.logged,
            )

        wait_until(
            lambda: is_created(port, connector(server.address)),
            "the worker",
            seconds_max=120,
            seen=worker.logged,
        )
        wait_for(1)
        worker.kill()
        more = fill(server.address, "input", RECORDS, first=RECORDS)
        wait_for(RECORDS + 1)
        server.kill()
        server.start()
        wait_for(2 * RECORDS)
    assert mirrored() == {partition: sent[partition] + more[partition] for partition in sent}
