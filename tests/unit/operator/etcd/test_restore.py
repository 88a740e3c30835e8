"""Tests of restoring a member: complete data or none, and existing files stay."""

import fcntl
import stat

import pytest

from kafscale.errors import DamagedObjectError, OperatingError
from kafscale.metadata.cluster.restore_marker import REVISION_BUMP
from kafscale.operator.etcd import restore as etcd_restore
from kafscale.operator.etcd.restore import Identity
from unit.operator.etcd.members import with_checksum

IDENTITY = Identity(
    name="etcd-0",
    advertise_peer_urls="http://etcd-0:2380",
    initial_cluster="etcd-0=http://etcd-0:2380",
    initial_cluster_token="test",  # noqa: S106 - a name, not a secret.
)
RESTORE_SCRIPT = """
printf '%s ' "$@" > {log}
while [ "$1" != --data-dir ]; do shift; done
mkdir -p "$2/member/snap" "$2/member/wal"
echo new > "$2/member/snap/db"
echo new > "$2/member/wal/0.wal"
"""
NEW = {"member/snap/db": "new\n", "member/wal/0.wal": "new\n"}


@pytest.fixture
def program(tmp_path):
    """Creates an etcdutl that runs a script, with these options in its help."""

    def make(script, options="--bump-revision"):
        path = tmp_path / "etcdutl"
        path.write_text(
            f'#!/bin/sh\nif [ "$3" = --help ]; then echo "{options}"; exit; fi\n'
            + script.format(log=tmp_path / "arguments")
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    return make


@pytest.fixture
def snapshot(tmp_path):
    path = tmp_path / "snapshot.db"
    path.write_bytes(with_checksum())
    return path


def restore(program, snapshot, directory, moved_to=""):
    with etcd_restore.staging(directory) as staging_directory:
        return etcd_restore.restore(
            program, snapshot, directory, staging_directory, IDENTITY, moved_to=moved_to
        )


def content(directory):
    return {
        str(path.relative_to(directory)): path.read_text()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_restore_creates_a_member_only(program, snapshot, tmp_path):
    directory = tmp_path / "a" / "data"
    assert not etcd_restore.has_data(directory)
    assert restore(program(RESTORE_SCRIPT), snapshot, directory)
    assert etcd_restore.has_data(directory)
    assert content(directory) == NEW
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    arguments = (tmp_path / "arguments").read_text()
    assert arguments.startswith(f"snapshot restore {snapshot} --data-dir ")
    for expected in (
        "--name etcd-0",
        "--initial-cluster etcd-0=http://etcd-0:2380",
        "--initial-cluster-token test",
        "--initial-advertise-peer-urls http://etcd-0:2380",
        f"--bump-revision {REVISION_BUMP} --mark-compacted",
    ):
        assert expected in arguments


def test_old_etcdutl_does_not_bump_the_revision(program, snapshot, tmp_path):
    assert not restore(program(RESTORE_SCRIPT, options="--name"), snapshot, tmp_path / "data")
    assert "--bump-revision" not in (tmp_path / "arguments").read_text()


@pytest.mark.parametrize(
    "script", ["echo out >&2; echo of luck >&2; exit 3", RESTORE_SCRIPT + "exit 3"]
)
def test_failing_etcdutl_leaves_no_data(program, snapshot, tmp_path, script):
    with pytest.raises(OperatingError, match=r"etcdutl failed with 3: (of luck|no output)"):
        restore(program(script), snapshot, tmp_path / "data")
    assert content(tmp_path / "data") == {}
    assert not etcd_restore.has_data(tmp_path / "data")


def test_missing_etcdutl_is_an_error(snapshot, tmp_path):
    with pytest.raises(OperatingError, match="cannot be run"):
        restore(str(tmp_path / "absent"), snapshot, tmp_path / "data")


def test_unfinished_restore_is_removed(program, snapshot, tmp_path):
    unfinished = tmp_path / "data" / ".restoring" / "data" / "member"
    unfinished.mkdir(parents=True)
    (unfinished / "half").write_text("half")
    restore(program(RESTORE_SCRIPT), snapshot, tmp_path / "data")
    assert content(tmp_path / "data") == NEW


@pytest.fixture
def database(tmp_path):
    """The database of an existing member."""
    path = tmp_path / "data" / "member" / "snap" / "db"
    path.parent.mkdir(parents=True)
    path.write_text("old\n")
    return path


def test_existing_member_is_moved_aside(program, snapshot, tmp_path, database):
    restore(program(RESTORE_SCRIPT), snapshot, tmp_path / "data", moved_to="replaced")
    assert content(tmp_path / "data") == NEW | {"replaced/snap/db": "old\n"}
    assert database.read_text() == "new\n"


def test_member_that_never_started_has_no_data(database, tmp_path):
    assert etcd_restore.has_member(tmp_path / "data")
    assert not etcd_restore.has_data(tmp_path / "data")
    log = database.parents[1] / "wal" / "0000000000000000-0000000000000000.wal"
    log.parent.mkdir()
    assert not etcd_restore.has_data(tmp_path / "data")
    log.touch()
    assert etcd_restore.has_data(tmp_path / "data")


def test_running_etcd_is_not_replaced(program, snapshot, tmp_path, database):
    with database.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(OperatingError, match="stop it before"):
            restore(program(RESTORE_SCRIPT), snapshot, tmp_path / "data", moved_to="replaced")
    assert content(tmp_path / "data") == {"member/snap/db": "old\n"}


def test_unwritable_directory_is_an_error(program, snapshot, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OperatingError, match="cannot be written"):
        restore(program(RESTORE_SCRIPT), snapshot, tmp_path / "file" / "data")


def test_check_file_detects_damage(snapshot, tmp_path):
    etcd_restore.check_file(snapshot)
    snapshot.write_bytes(with_checksum()[:-1])
    with pytest.raises(DamagedObjectError, match="the snapshot is damaged"):
        etcd_restore.check_file(snapshot)
    with pytest.raises(OperatingError, match="cannot be read: No such file"):
        etcd_restore.check_file(tmp_path / "absent.db")
