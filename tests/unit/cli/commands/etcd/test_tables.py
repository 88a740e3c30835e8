"""Tables of `kafscale etcd`."""

import msgspec

from kafscale.admin.etcd.backups.listing import SnapshotInfo
from kafscale.admin.etcd.members import EtcdStatus
from kafscale.cli.commands.etcd import tables

RESTORED = {
    "restored": True,
    "dataDirectory": "data",
    "snapshot": "a/b.db",
    "takenAt": "yesterday",
    "revision": 7,
    "revisionHasLeapt": True,
    "movedAside": None,
}
SNAPSHOT = {
    "key": "a/b.db",
    "takenAt": "2026-01-31T12:00:00.000Z",
    "ageSeconds": 300,
    "sizeBytes": 2048,
    "revision": 7,
    "verified": "size",
}
MEMBER = {
    "name": "etcd-0",
    "endpoint": "etcd-0:2379",
    "role": "leader",
    "version": "3.6.5",
    "databaseBytes": 20_480,
    "usedBytes": 1024,
    "revision": 7,
    "alarms": [],
    "problems": [],
}
LOST = {
    "name": "",
    "endpoint": "etcd-1:2379",
    "role": "unreachable",
    "version": None,
    "databaseBytes": None,
    "usedBytes": None,
    "revision": None,
    "alarms": ["NOSPACE"],
    "problems": ["no answer"],
}


def rows(capsys):
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_status_shows_members_and_their_problems(capsys):
    tables.print_status(
        msgspec.convert({"leader": "etcd-0", "members": [MEMBER, LOST]}, EtcdStatus)
    )
    shown = rows(capsys)
    assert shown[0] == "2 members, leader etcd-0"
    assert "etcd-0 etcd-0:2379 leader 3.6.5 20.0 KiB 1.0 KiB 7" in shown
    assert "? etcd-1:2379 unreachable NOSPACE" in shown
    assert "etcd-1:2379: no answer" in shown
    tables.print_status(msgspec.convert({"leader": None, "members": [LOST]}, EtcdStatus))
    assert rows(capsys)[0] == "1 member, no leader was reachable"


def test_snapshots_are_listed_with_their_problems(capsys):
    damaged = SNAPSHOT | {"verified": "no", "problem": "checksum mismatch"}
    tables.print_snapshots(msgspec.convert([SNAPSHOT, damaged], list[SnapshotInfo]))
    shown = rows(capsys)
    assert "2026-01-31T12:00:00.000Z 5m 0s 2.0 KiB 7 size a/b.db" in shown
    assert shown[-1] == "a/b.db: checksum mismatch"
    tables.print_snapshots([])
    assert rows(capsys) == ["there are no snapshots; take one with: kafscale etcd snapshot"]


def test_taken_snapshot_is_shown_with_deleted_ones(capsys):
    tables.print_snapshot(msgspec.convert(SNAPSHOT | {"deleted": ["a/old.db"]}, SnapshotInfo))
    assert rows(capsys) == ["stored a/b.db: 2.0 KiB, revision 7", "deleted a/old.db"]


def test_restore_prints_the_next_steps(capsys):
    tables.print_restored(RESTORED)
    assert rows(capsys) == [
        "restored a/b.db to data",
        "taken at yesterday, revision 7",
        "next: restore every other member from the same snapshot, then start them all",
    ]
    tables.print_restored(RESTORED | {"revisionHasLeapt": False, "movedAside": "data/old"})
    shown = rows(capsys)
    assert "moved existing data to data/old" in shown
    assert shown[-1].endswith("run: kafscale etcd restored --snapshot a/b.db")
