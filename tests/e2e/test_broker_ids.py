"""Two real brokers on one etcd never use one id; a broker that restarts gets its id back."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from services import fork_server, s3_server
from services.broker import LISTENING, BrokerProcess
from services.etcd_server import EtcdServer
from services.s3_server import S3Server, broker_settings

LEASE_S = 2


NEW_HOST_NAME = [
    *("unshare", "--user", "--map-root-user", "--uts"),
    *("sh", "-c", 'hostname "$0" && exec "$@"', "alpha"),
]
"""Runs a command on a host name of its own, which has no number."""

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(not s3_server.is_available(), reason="no Go here to build an S3 server"),
]


def can_set_host_name() -> bool:
    """Whether the kernel lets this user do that in a namespace of its own."""
    if shutil.which("unshare") is None:
        return False
    probe = [*NEW_HOST_NAME, "true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0  # noqa: S603


class RenamedHostBroker(BrokerProcess):
    """A broker on a host that is named `alpha`."""

    def launch(self) -> fork_server.Process:
        self.directory.mkdir(parents=True, exist_ok=True)
        program = Path(sys.executable).with_name("kafscale")
        with self.log.open("ab") as output:
            return subprocess.Popen(  # noqa: S603 - the command is our own.
                [*NEW_HOST_NAME, program, "broker"],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )


@pytest.fixture
def settings(tmp_path) -> Iterator[dict[str, str]]:
    """The settings of brokers of one cluster."""
    for name in ("etcd", "s3"):
        (tmp_path / name).mkdir()
    with EtcdServer(tmp_path / "etcd") as etcd, S3Server(tmp_path / "s3") as s3:
        yield broker_settings(s3.bucket) | {
            "etcd_endpoints": etcd.members[0].endpoint,
            "broker_lease_ttl_ms": str(LEASE_S * 1000),
        }


def started_ids(broker: BrokerProcess) -> list[int]:
    """The ids with which the broker has started so far."""
    events = [json.loads(line) for line in broker.logged().splitlines() if line.startswith("{")]
    return [event["node_id"] for event in events if event.get("event") == "broker started"]


def test_second_broker_with_the_id_of_a_living_one_does_not_start(tmp_path, settings):
    named = settings | {"broker_id": "broker-2"}
    with BrokerProcess(tmp_path / "first", **named) as first:
        second = BrokerProcess(tmp_path / "second", **named)
        assert second.launch().wait(60) == 1
        assert (
            "broker id 2 is in use: another broker with this id runs at"
            f" {first.address}; give each broker an id of its own with KAFSCALE_BROKER_ID"
        ) in second.logged()
        assert LISTENING not in second.logged()
        assert "session ended" not in first.logged(), "the first one has not noticed anything"
        first.kill()
        with second:
            assert started_ids(second) == [2]
        assert second.logged().count("waiting for the end of another process's lease") == 2


def test_killed_broker_gets_its_id_back_at_once(tmp_path, settings):
    with BrokerProcess(tmp_path, **settings, broker_id="2") as broker:
        broker.kill()
        broker.start()
        assert started_ids(broker) == [2, 2]
        assert "waiting for the end" not in broker.logged()


@pytest.mark.skipif(not can_set_host_name(), reason="host names cannot be set here")
def test_brokers_on_host_names_without_a_number_get_ids_of_their_own(tmp_path, settings):
    with (
        RenamedHostBroker(tmp_path / "first", **settings) as first,
        RenamedHostBroker(tmp_path / "second", **settings) as second,
    ):
        assert (started_ids(first), started_ids(second)) == ([1001], [1002])
        first.terminate()
        second.kill()
        second.start()
        first.start()
        assert (started_ids(first), started_ids(second)) == ([1001, 1001], [1002, 1002])
