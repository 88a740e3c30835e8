"""Tables of `kafscale etcd`: members and snapshots."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafscale.admin.etcd.backups.listing import SnapshotInfo
from kafscale.admin.etcd.members import DefragmentedMember, EtcdStatus, MemberInfo
from kafscale.cli.output import Part, print_line, print_table
from kafscale.text.formatting import format_age, format_size, pluralize

_COLOURS: Final = {
    "leader": "green",
    "follower": "green",
    "learner": "yellow",
    "checksum": "green",
    "no": "red",
    "unreachable": "red",
}


def print_status(status: EtcdStatus) -> None:
    members = status.members
    leader = status.leader
    leadership = f"leader {leader}" if leader else "no leader was reachable"
    print_line((pluralize(len(members), "member"), "bold"), f", {leadership}")
    print_line()
    print_table(
        ("member", "endpoint", "role", "version", "database", "in use", "revision", "alarms"),
        map(_member, members),
    )
    for each in members:
        for problem in each.problems:
            print_line((f"{each.name or each.endpoint}: ", "yellow"), problem)


def print_snapshots(snapshots: Sequence[SnapshotInfo]) -> None:
    if not snapshots:
        print_line("there are no snapshots; take one with: kafscale etcd snapshot")
        return
    print_table(
        ("taken", "age", "size", "revision", "verified", "key"),
        (
            (
                each.taken_at,
                format_age(each.age_seconds * 1000),
                format_size(each.size_bytes),
                str(each.revision),
                _coloured(str(each.verified)),
                (each.key, "bold"),
            )
            for each in snapshots
        ),
    )
    for each in snapshots:
        if each.is_damaged:
            print_line((f"{each.key}: ", "red"), str(each.problem))


def print_snapshot(snapshot: SnapshotInfo) -> None:
    print_line(
        "stored ",
        (snapshot.key, "bold"),
        f": {format_size(snapshot.size_bytes)}, revision {snapshot.revision}",
    )
    for key in snapshot.deleted or ():
        print_line(f"deleted {key}")


def print_freed(freed: Sequence[DefragmentedMember]) -> None:
    print_table(
        ("endpoint", "before", "after"),
        (
            ((each.endpoint, "bold"), format_size(each.before_bytes), format_size(each.after_bytes))
            for each in freed
        ),
    )


def print_restored(restored: Mapping[str, Any]) -> None:
    directory = restored["dataDirectory"]
    if not restored["restored"]:
        print_line(f"{directory} already contains data and was not changed")
        return
    print_line("restored ", (restored["snapshot"], "bold"), f" to {directory}")
    if restored["takenAt"]:
        print_line(f"taken at {restored['takenAt']}, revision {restored['revision']}")
    if restored["movedAside"]:
        print_line(f"moved existing data to {restored['movedAside']}")
    print_line("next: restore every other member from the same snapshot, then start them all")
    if not restored["revisionHasLeapt"]:
        print_line(
            ("this version of etcdutl cannot mark the metadata as restored: ", "yellow"),
            "before any broker starts, run: kafscale etcd restored --snapshot ",
            restored["snapshot"],
        )


def _member(each: MemberInfo) -> tuple[Part, ...]:
    return (
        (each.name or "?", "bold"),
        each.endpoint,
        _coloured(each.role),
        each.version or "",
        _size(each.database_bytes),
        _size(each.used_bytes),
        "" if each.revision is None else str(each.revision),
        (", ".join(each.alarms), "red"),
    )


def _size(size_bytes: int | None) -> str:
    return "" if size_bytes is None else format_size(size_bytes)


def _coloured(word: str) -> Part:
    return word, _COLOURS.get(word, "")
