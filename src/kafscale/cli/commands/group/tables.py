"""Tables of `kafscale group`: groups, members and offsets."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum

from kafscale.admin.groups.groups import GroupDetail, GroupInfo, GroupOffset
from kafscale.admin.groups.reset import ResetRow
from kafscale.cli.output import Part, print_line, print_table
from kafscale.text.formatting import pluralize


class Section(StrEnum):
    """The parts of a description."""

    STATE = "state"
    MEMBERS = "members"
    OFFSETS = "offsets"


def print_list(groups: Sequence[GroupInfo], *, is_filtered: bool) -> None:
    if not groups:
        if is_filtered:
            print_line("no group matches; list all groups with: kafscale group list")
        else:
            print_line("there are no groups; join one with: kafscale consume TOPIC --group NAME")
        return
    print_table(
        ("group", "type", "state", "protocol"),
        (
            ((group.group, "bold"), group.type, _state(group.state), group.protocol_type or "-")
            for group in groups
        ),
    )


def print_descriptions(groups: Iterable[GroupDetail], sections: Collection[Section]) -> None:
    for index, group in enumerate(groups):
        if index:
            print_line()
        _print_heading(group)
        for section in Section:
            if section in sections:
                print_line()
                _PRINT[section](group)


def print_offsets(offsets: Sequence[GroupOffset]) -> None:
    if not offsets:
        print_line("the group has no committed offsets")
        return
    print_table(
        ("topic", "partition", "committed", "end", "lag", "leader epoch", "metadata"),
        ((*_position(each), _number(each.leader_epoch), each.metadata or "-") for each in offsets),
    )


def print_resets(resets: Sequence[ResetRow]) -> None:
    print_table(
        ("topic", "partition", "before", "after", "change", "start", "end", ""),
        (
            (
                each.topic,
                str(each.partition),
                _number(each.before),
                (_number(each.after), "bold"),
                _change(each.before, each.after),
                _number(each.start_offset),
                _number(each.end_offset),
                (each.note or "", "yellow"),
            )
            for each in resets
        ),
    )


def _print_heading(group: GroupDetail) -> None:
    lags = [each.lag for each in group.offsets if each.lag is not None]
    facts = [pluralize(len(group.members), "member")]
    if group.assignor:
        facts.append(group.assignor)
    if lags:
        facts.append(f"{pluralize(sum(lags), 'record')} behind")
    print_line((group.group, "bold"), ": ", _state(group.state), f", {', '.join(facts)}")


def _print_state(group: GroupDetail) -> None:
    print_table(
        ("type", "state", "assignor", "epoch", "members", "coordinator"),
        [
            (
                group.type,
                _state(group.state),
                group.assignor or "-",
                _number(group.epoch),
                str(len(group.members)),
                f"{group.coordinator.id} ({group.coordinator.address})",
            )
        ],
    )


def _print_members(group: GroupDetail) -> None:
    if not group.members:
        print_line("the group has no members")
        return
    print_table(
        ("member", "instance", "host", "client", "partitions", "assignment"),
        (
            (
                member.member_id,
                member.instance_id or "-",
                member.host,
                member.client_id,
                str(sum(map(len, member.assignment.values()))),
                format_assignment(member.assignment) or "-",
            )
            for member in group.members
        ),
    )


def _print_offsets(group: GroupDetail) -> None:
    if not group.offsets:
        print_line("the group has no committed offsets and no assigned partitions")
        return
    print_table(
        ("topic", "partition", "committed", "end", "lag", "member", "host", "client"),
        (
            (*_position(each), each.member_id or "-", each.host or "-", each.client_id or "-")
            for each in group.offsets
        ),
    )


_PRINT = {
    Section.STATE: _print_state,
    Section.MEMBERS: _print_members,
    Section.OFFSETS: _print_offsets,
}


def format_assignment(assignment: Mapping[str, Sequence[int]]) -> str:
    """Format topics with their partitions.

    >>> format_assignment({"orders": [0, 1, 2, 5], "users": [3]})
    'orders 0-2,5; users 3'
    """
    return "; ".join(
        f"{topic} {_ranges(partitions)}" for topic, partitions in sorted(assignment.items())
    )


def _ranges(numbers: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)


def _position(offset: GroupOffset) -> tuple[Part, ...]:
    lag = offset.lag
    return (
        offset.topic,
        str(offset.partition),
        _number(offset.committed_offset),
        _number(offset.end_offset),
        (_number(lag), "bold" if lag else ""),
    )


def _state(state: str) -> Part:
    return state or "-", {"Stable": "green", "Empty": "dim"}.get(state, "yellow")


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _change(before: int | None, after: int | None) -> str:
    return "-" if before is None or after is None else f"{after - before:+d}"
