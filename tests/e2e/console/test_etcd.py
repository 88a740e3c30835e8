"""Members of etcd and snapshots over the API."""

import time

import pytest

from services import s3_server
from services.broker import BrokerProcess
from services.console import ConsoleProcess
from services.etcd_server import EtcdServer
from services.s3_server import S3Server, broker_settings

pytestmark = pytest.mark.timeout(180)


def test_embedded_store_has_no_etcd(console_client):
    state = console_client.get("/etcd")
    assert not state["isConfigured"]
    assert state["members"] == state["snapshots"] == []
    response = console_client.request("POST", "/etcd/snapshots", {})
    assert (response.status, response.json["error"]) == (409, "conflict")


@pytest.mark.long
@pytest.mark.skipif(not s3_server.is_available(), reason="there is no S3 server to be had here")
def test_members_are_shown_and_snapshots_taken(tmp_path):
    (tmp_path / "etcd").mkdir()
    (tmp_path / "s3").mkdir()
    with EtcdServer(tmp_path / "etcd") as etcd, S3Server(tmp_path / "s3") as s3:
        settings = broker_settings(s3.bucket) | {
            "etcd_endpoints": ",".join(etcd.settings().endpoints)
        }
        with (
            BrokerProcess(tmp_path, **settings) as broker,
            ConsoleProcess(tmp_path, broker) as console,
        ):
            console_client = console.client()
            state = console_client.get("/etcd")
            assert state["isConfigured"]
            assert state["problem"] is None
            assert [member["role"] for member in state["members"]] == ["leader"]
            assert state["members"][0]["databaseBytes"] > 0
            assert state["snapshots"] == []

            first = console_client.post("/etcd/snapshots", {})
            assert first["sizeBytes"] > 0
            assert first["problem"] is None
            time.sleep(1.1)  # Snapshots are named by the second.
            second = console_client.post("/etcd/snapshots", {"retain": 1})
            listed = console_client.get("/etcd")["snapshots"]
            assert [each["key"] for each in listed] == [second["key"]]
            assert listed[0]["key"].startswith(state["snapshotsAt"].split("/", 3)[3])
            assert console_client.request("POST", "/etcd/snapshots", {"retain": -1}).status == 400

            etcd.__exit__()
            state = console_client.get("/etcd")
            assert state["problem"]
            assert len(state["snapshots"]) == 1, "snapshots in the bucket are still listed"
