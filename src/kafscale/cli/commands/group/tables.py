"""How `kafscale group` prints groups for people: the data of `group_admin` in tables."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from kafscale.cli.output import Part, print_line, print_table
from kafscale.text.formatting import counted


class Section(StrEnum):
    """What can be shown of a group."""

    STATE = "state"
    MEMBERS = "members"
    OFFSETS = "offsets"


def print_list(groups: Sequence[dict[str, Any]], *, is_filtered: bool) -> None:
    if not groups:
        if is_filtered:
            print_line("no group is like that; all of them: kafscale group list")
        else:
            print_line("there are no groups; join one with: kafscale consume TOPIC --group NAME")
        return
    print_table(
        ("group", "type", "state", "protocol"),
        (
            (
                (group["group"], "bold"),
                group["type"],
                _state(group["state"]),
                group["protocolType"] or "-",
            )
            for group in groups
        ),
    )


def print_descriptions(groups: Iterable[dict[str, Any]], sections: Collection[Section]) -> None:
    for place, group in enumerate(groups):
        if place:
            print_line()
        _print_heading(group)
        for section in Section:
            if section in sections:
                print_line()
                _PRINT[section](group)


def print_offsets(offsets: Sequence[dict[str, Any]]) -> None:
    if not offsets:
        print_line("nothing is committed")
        return
    print_table(
        ("topic", "partition", "committed", "end", "lag", "leader epoch", "metadata"),
        (
            (*_position(each), _number(each["leaderEpoch"]), each["metadata"] or "-")
            for each in offsets
        ),
    )


def print_resets(resets: Sequence[dict[str, Any]]) -> None:
    print_table(
        ("topic", "partition", "before", "after", "moves by", "start", "end", ""),
        (
            (
                each["topic"],
                str(each["partition"]),
                _number(each["before"]),
                (_number(each["after"]), "bold"),
                _change(each["before"], each["after"]),
                _number(each["startOffset"]),
                _number(each["endOffset"]),
                (each["note"] or "", "yellow"),
            )
            for each in resets
        ),
    )


def _print_heading(group: Mapping[str, Any]) -> None:
    lags = [each["lag"] for each in group["offsets"] if each["lag"] is not None]
    told = [counted(len(group["members"]), "member")]
    if group["assignor"]:
        told.append(group["assignor"])
    if lags:
        told.append(f"{counted(sum(lags), 'record')} behind")
    print_line((group["group"], "bold"), ": ", _state(group["state"]), f", {', '.join(told)}")


def _print_state(group: Mapping[str, Any]) -> None:
    print_table(
        ("type", "state", "assignor", "epoch", "members", "coordinator"),
        [
            (
                group["type"],
                _state(group["state"]),
                group["assignor"] or "-",
                _number(group["epoch"]),
                str(len(group["members"])),
                f"{group['coordinator']['id']} ({group['coordinator']['address']})",
            )
        ],
    )


def _print_members(group: Mapping[str, Any]) -> None:
    if not group["members"]:
        print_line("it has no members")
        return
    print_table(
        ("member", "instance", "host", "client", "partitions", "assignment"),
        (
            (
                member["memberId"],
                member["instanceId"] or "-",
                member["host"],
                member["clientId"],
                str(sum(map(len, member["assignment"].values()))),
                assignment_in_words(member["assignment"]) or "-",
            )
            for member in group["members"]
        ),
    )


def _print_offsets(group: Mapping[str, Any]) -> None:
    if not group["offsets"]:
        print_line("nothing is committed, and no partition is assigned")
        return
    print_table(
        ("topic", "partition", "committed", "end", "lag", "member", "host", "client"),
        (
            (
                *_position(each),
                each["memberId"] or "-",
                each["host"] or "-",
                each["clientId"] or "-",
            )
            for each in group["offsets"]
        ),
    )


_PRINT = {
    Section.STATE: _print_state,
    Section.MEMBERS: _print_members,
    Section.OFFSETS: _print_offsets,
}


def assignment_in_words(assignment: Mapping[str, Sequence[int]]) -> str:
    """Topics with their partitions.

    >>> assignment_in_words({"orders": [0, 1, 2, 5], "users": [3]})
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


def _position(offset: Mapping[str, Any]) -> tuple[Part, ...]:
    lag = offset["lag"]
    return (
        offset["topic"],
        str(offset["partition"]),
        _number(offset["committedOffset"]),
        _number(offset["endOffset"]),
        (_number(lag), "bold" if lag else ""),
    )


def _state(state: str) -> Part:
    return state or "-", {"Stable": "green", "Empty": "dim"}.get(state, "yellow")


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _change(before: int | None, after: int | None) -> str:
    return "-" if before is None or after is None else f"{after - before:+d}"
