"""What `kafscale etcd` prints for people."""

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


def test_members_with_what_is_wrong_with_them(capsys):
    tables.print_status(
        msgspec.convert({"leader": "etcd-0", "members": [MEMBER, LOST]}, EtcdStatus)
    )
    shown = rows(capsys)
    assert shown[0] == "2 members, etcd-0 leads"
    assert "etcd-0 etcd-0:2379 leader 3.6.5 20.0 KiB 1.0 KiB 7" in shown
    assert "? etcd-1:2379 unreachable NOSPACE" in shown
    assert "etcd-1:2379: no answer" in shown
    tables.print_status(msgspec.convert({"leader": None, "members": [LOST]}, EtcdStatus))
    assert rows(capsys)[0] == "1 member, nobody leads, as far as was asked"


def test_snapshots_with_what_is_wrong_with_them(capsys):
    damaged = SNAPSHOT | {"verified": "no", "problem": "checksum mismatch"}
    tables.print_snapshots(msgspec.convert([SNAPSHOT, damaged], list[SnapshotInfo]))
    shown = rows(capsys)
    assert "2026-01-31T12:00:00.000Z 5 min 2.0 KiB 7 size a/b.db" in shown
    assert shown[-1] == "a/b.db: checksum mismatch"
    tables.print_snapshots([])
    assert rows(capsys) == ["there are no snapshots here; take one with: kafscale etcd snapshot"]


def test_one_that_was_taken_and_those_that_had_to_go(capsys):
    tables.print_taken(msgspec.convert(SNAPSHOT | {"deleted": ["a/old.db"]}, SnapshotInfo))
    assert rows(capsys) == ["took a/b.db: 2.0 KiB, revision 7", "deleted a/old.db"]


def test_what_is_to_be_done_after_a_restoration(capsys):
    tables.print_restored(RESTORED)
    assert rows(capsys) == [
        "restored a/b.db to data",
        "it was taken at yesterday, at revision 7",
        "next: restore every other member from the same snapshot, then start them all",
    ]
    tables.print_restored(RESTORED | {"revisionHasLeapt": False, "movedAside": "data/old"})
    shown = rows(capsys)
    assert "what was there is in data/old now" in shown
    assert shown[-1].endswith("say so with: kafscale etcd restored --snapshot a/b.db")
