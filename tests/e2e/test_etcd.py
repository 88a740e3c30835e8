"""`kafscale etcd` with real etcd members and a real bucket: snapshots and restore."""

import json
import os
from pathlib import Path

import pytest

from kafscale.metadata.cluster.restore_marker import find_pending_restore
from services import etcd_programs
from services.etcd_server import PROGRAMS, EtcdCluster, EtcdServer
from services.process import free_port
from services.s3_server import broker_settings
from services.selection import long_except
from services.shell import Shell

pytestmark = pytest.mark.timeout(300)
"""The first run may build programs."""


@pytest.fixture(params=long_except(["newest", "old"], "old".__eq__))
def bumps_revision(request, monkeypatch):
    """An etcdutl on the PATH; true if its restore bumps revisions."""
    is_newest = request.param == "newest"
    if is_newest and not etcd_programs.is_available():
        pytest.skip("no Go here to build etcdutl with")
    directory = etcd_programs.directory() if is_newest else PROGRAMS
    monkeypatch.setenv("PATH", str(directory), prepend=os.pathsep)
    return is_newest


@pytest.fixture
def cluster(tmp_path):
    directory = tmp_path / "first"
    directory.mkdir()
    with EtcdCluster(directory) as running:
        yield running


@pytest.fixture
def kafscale(cluster, s3):
    return shell_of(cluster, s3)


def shell_of(cluster, s3):
    endpoints = ",".join(member.endpoint for member in cluster.members)
    return Shell("", etcd_endpoints=endpoints, **broker_settings(s3.bucket))


def data(kafscale, *arguments):
    return json.loads(kafscale("etcd", *arguments, "-o", "json"))


def restore(kafscale, directory, member, members, *arguments):
    return data(
        kafscale,
        "restore",
        "--data-dir",
        str(directory),
        "--name",
        member.name,
        "--initial-cluster",
        ",".join(f"{each.name}={each.peer_url}" for each in members),
        "--initial-advertise-peer-urls",
        member.peer_url,
        *arguments,
    )


def test_restore_returns_to_the_state_of_the_snapshot(
    bumps_revision, cluster, kafscale, s3, tmp_path
):
    cluster.control("put", "/kafscale/topics/orders/config", "before")
    snapshot = data(kafscale, "snapshot")
    cluster.control("put", "/kafscale/topics/orders/config", "after")
    for member in cluster.members:
        member.kill()

    directory = tmp_path / "second"
    second = EtcdCluster(directory)
    for member in second.members:
        result = restore(
            kafscale, directory / member.name, member, second.members, "--snapshot", snapshot["key"]
        )
        assert result["revisionHasLeapt"] is bumps_revision
        assert result["takenAt"] == snapshot["takenAt"]
    with second:
        assert second.control("get", "--print-value-only", "/kafscale/topics/orders/config") == (
            "before\n"
        )
        again = shell_of(second, s3)
        roles = [each["role"] for each in data(again, "status")["members"]]
        assert sorted(roles) == ["follower", "follower", "leader"]
        # Brokers detect the restore by the revision, or by the mark of `etcd restored`.
        assert (second.run(find_pending_restore) is not None) is bumps_revision
        assert "marked" in again("etcd", "restored", "--snapshot", snapshot["key"])
        assert second.run(find_pending_restore).info.snapshot == snapshot["key"]
        assert data(again, "snapshot", "--retain", "1")["deleted"] == [snapshot["key"]]


def test_snapshots_are_listed_and_damage_is_detected(cluster, kafscale, s3, tmp_path, monkeypatch):
    assert "there are no snapshots;" in kafscale("etcd", "snapshots")
    for number in range(3):
        cluster.control("put", "/key", str(number))
        assert "stored etcd-snapshots/default/" in kafscale("etcd", "snapshot", "--retain", "2")
    listed = data(kafscale, "snapshots")
    assert [each["verified"] for each in listed] == ["size", "size"]
    assert [each["revision"] for each in listed] == [3, 4]
    assert data(kafscale, "snapshots", "--prefix", "elsewhere") == []
    assert {each["verified"] for each in data(kafscale, "snapshots", "--verify")} == {"checksum"}

    (path, _) = s3.objects("etcd-snapshots/default/*.db")
    damaged = bytearray(path.read_bytes())
    damaged[1000] ^= 1
    path.write_bytes(damaged)
    kafscale("etcd", "snapshots")
    kafscale("etcd", "snapshots", "--verify", code=1)
    monkeypatch.setenv("PATH", str(PROGRAMS), prepend=os.pathsep)
    directory = str(tmp_path / "restored")
    message = kafscale(
        "etcd", "restore", "--data-dir", directory, "--snapshot", s3.key(path), code=1
    )
    assert "checksum mismatch" in message


@pytest.mark.usefixtures("bumps_revision")
def test_restore_keeps_existing_data_or_moves_it_aside(cluster, kafscale, tmp_path, monkeypatch):
    cluster.control("put", "/key", "value")
    kafscale("etcd", "snapshot")
    monkeypatch.chdir(tmp_path)
    server = EtcdServer(tmp_path / "second")
    (member,) = server.members
    directory = tmp_path / "second" / member.name
    here = ("--data-dir", str(directory))

    kafscale("etcd", "restore", *here, "--initial-cluster", "other=http://a:1", code=1)
    assert list(directory.iterdir()) == []
    restore(kafscale, directory, member, [member], "--if-empty")
    first = (directory / "member").stat().st_ino
    assert "was not changed" in kafscale("etcd", "restore", *here, "--if-empty")
    assert "--force to move it aside" in kafscale("etcd", "restore", *here, code=1)
    assert (directory / "member").stat().st_ino == first
    with server:
        # The data of a running etcd is never replaced.
        running = kafscale("etcd", "restore", *here, "--force", code=1)
        assert "stop it before its data is replaced" in running
        assert server.control("get", "--print-value-only", "/key") == "value\n"
    moved = restore(kafscale, directory, member, [member], "--force")["movedAside"]
    assert Path(moved).stat().st_ino == first
    with server:
        assert server.control("get", "--print-value-only", "/key") == "value\n"


def test_snapshot_file_of_etcdctl_is_restored_if_complete(bumps_revision, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kafscale, file = Shell(""), tmp_path / "backup.db"
    with EtcdServer(tmp_path) as server:
        server.control("snapshot", "save", str(file))
    result = data(kafscale, "restore", "--data-dir", "restored", "--snapshot", "backup.db")
    assert (result["snapshot"], result["revisionHasLeapt"]) == ("backup.db", bumps_revision)
    file.write_bytes(file.read_bytes()[:-512])
    refused = kafscale("etcd", "restore", "--data-dir", "b", "--snapshot", "backup.db", code=1)
    assert "the snapshot is damaged" in refused


@pytest.mark.long
def test_members_are_listed_and_defragmented(cluster, kafscale):
    result = data(kafscale, "status")
    assert {each["name"] for each in result["members"]} == {"etcd-0", "etcd-1", "etcd-2"}
    assert result["leader"] in {"etcd-0", "etcd-1", "etcd-2"}
    freed = data(kafscale, "defragment")
    (leader,) = [each for each in result["members"] if each["role"] == "leader"]
    assert freed[-1]["endpoint"] == leader["endpoint"]
    assert all(each["afterBytes"] > 0 for each in freed)
    assert "before" in kafscale("etcd", "defragment")

    cluster.members[2].kill()
    shown = kafscale("etcd", "status")
    assert "unreachable" in shown
    assert "nothing was done" in kafscale("etcd", "defragment", code=1)


def test_unreachable_etcd_is_named_in_the_error(s3):
    endpoint = f"127.0.0.1:{free_port()}"
    unreachable = Shell(
        "",
        etcd_endpoints=endpoint,
        etcd_dial_timeout="200ms",
        etcd_request_timeout="500ms",
        **broker_settings(s3.bucket),
    )
    for command in (["status"], ["snapshot"], ["restored", "--snapshot", "20231114T221320Z-7.db"]):
        assert endpoint in unreachable("etcd", *command, code=1)
