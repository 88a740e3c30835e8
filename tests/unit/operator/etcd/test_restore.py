"""Restoring: a directory has whole data or none, and what was there is still there."""

import fcntl
import stat

import pytest

from kafscale.errors import DamagedObjectError, OperatingError
from kafscale.metadata.cluster.restore_marker import REVISION_BUMP
from kafscale.operator.etcd import restore as etcd_restore
from kafscale.operator.etcd.restore import Identity
from unit.operator.etcd.members import whole

IDENTITY = Identity(
    name="etcd-0",
    advertise_peer_urls="http://etcd-0:2380",
    initial_cluster="etcd-0=http://etcd-0:2380",
    initial_cluster_token="test",  # noqa: S106 - a name, not a secret.
)
RESTORES = """
printf '%s ' "$@" > {log}
while [ "$1" != --data-dir ]; do shift; done
mkdir -p "$2/member/snap" "$2/member/wal"
echo new > "$2/member/snap/db"
echo new > "$2/member/wal/0.wal"
"""
NEW = {"member/snap/db": "new\n", "member/wal/0.wal": "new\n"}


@pytest.fixture
def program(tmp_path):
    """Makes an etcdutl that does as the script says, and knows the options in its help."""

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
    path.write_bytes(whole())
    return path


def restore(program, snapshot, directory, aside=""):
    with etcd_restore.staging(directory) as room:
        return etcd_restore.restore(program, snapshot, directory, room, IDENTITY, aside=aside)


def content(directory):
    return {
        str(path.relative_to(directory)): path.read_text()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_a_member_is_made_and_nothing_else(program, snapshot, tmp_path):
    directory = tmp_path / "a" / "data"
    assert not etcd_restore.has_data(directory)
    assert restore(program(RESTORES), snapshot, directory)
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


def test_an_old_program_is_not_asked_for_what_it_cannot_do(program, snapshot, tmp_path):
    assert not restore(program(RESTORES, options="--name"), snapshot, tmp_path / "data")
    assert "--bump-revision" not in (tmp_path / "arguments").read_text()


@pytest.mark.parametrize("script", ["echo out >&2; echo of luck >&2; exit 3", RESTORES + "exit 3"])
def test_a_program_that_fails_leaves_no_data(program, snapshot, tmp_path, script):
    with pytest.raises(OperatingError, match=r"etcdutl failed with 3: (of luck|it said nothing)"):
        restore(program(script), snapshot, tmp_path / "data")
    assert content(tmp_path / "data") == {}
    assert not etcd_restore.has_data(tmp_path / "data")


def test_a_program_that_is_none_is_told(snapshot, tmp_path):
    with pytest.raises(OperatingError, match="cannot be run"):
        restore(str(tmp_path / "absent"), snapshot, tmp_path / "data")


def test_what_somebody_left_who_was_killed_is_in_nobodys_way(program, snapshot, tmp_path):
    left = tmp_path / "data" / ".restoring" / "data" / "member"
    left.mkdir(parents=True)
    (left / "half").write_text("half")
    restore(program(RESTORES), snapshot, tmp_path / "data")
    assert content(tmp_path / "data") == NEW


@pytest.fixture
def database(tmp_path):
    """What a member has that was there before."""
    path = tmp_path / "data" / "member" / "snap" / "db"
    path.parent.mkdir(parents=True)
    path.write_text("old\n")
    return path


def test_what_was_there_is_moved_aside(program, snapshot, tmp_path, database):
    restore(program(RESTORES), snapshot, tmp_path / "data", aside="replaced")
    assert content(tmp_path / "data") == NEW | {"replaced/snap/db": "old\n"}
    assert database.read_text() == "new\n"


def test_a_member_that_has_never_begun_has_no_data(database, tmp_path):
    assert etcd_restore.has_member(tmp_path / "data")
    assert not etcd_restore.has_data(tmp_path / "data")
    log = database.parents[1] / "wal" / "0000000000000000-0000000000000000.wal"
    log.parent.mkdir()
    assert not etcd_restore.has_data(tmp_path / "data")
    log.touch()
    assert etcd_restore.has_data(tmp_path / "data")


def test_from_an_etcd_that_runs_nothing_is_taken_away(program, snapshot, tmp_path, database):
    with database.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(OperatingError, match="stop it before"):
            restore(program(RESTORES), snapshot, tmp_path / "data", aside="replaced")
    assert content(tmp_path / "data") == {"member/snap/db": "old\n"}


def test_a_directory_that_cannot_be_made_is_told(program, snapshot, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OperatingError, match="cannot be written"):
        restore(program(RESTORES), snapshot, tmp_path / "file" / "data")


def test_a_file_is_proven_to_be_whole(snapshot, tmp_path):
    etcd_restore.check_file(snapshot)
    snapshot.write_bytes(whole()[:-1])
    with pytest.raises(DamagedObjectError, match="no whole snapshot"):
        etcd_restore.check_file(snapshot)
    with pytest.raises(OperatingError, match="cannot be read: No such file"):
        etcd_restore.check_file(tmp_path / "absent.db")
