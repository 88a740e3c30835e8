"""Tables of `kafscale group`."""

import msgspec
import pytest

from kafscale.admin.groups.groups import GroupDetail, GroupOffset
from kafscale.admin.groups.reset import ResetRow
from kafscale.cli.commands.group import tables
from kafscale.cli.commands.group.tables import Section

MEMBER = {
    "memberId": "m-1",
    "instanceId": None,
    "clientId": "app",
    "host": "10.0.0.7",
    "topics": ["orders"],
    "assignment": {"orders": [0, 1, 2, 5]},
}
READ = {
    "topic": "orders",
    "partition": 0,
    "committedOffset": 7,
    "endOffset": 1200,
    "lag": 1193,
    "leaderEpoch": 2,
    "metadata": "note",
    "memberId": "m-1",
    "host": "10.0.0.7",
    "clientId": "app",
}
UNREAD = dict.fromkeys(READ) | {"topic": "gone", "partition": 1}
GROUP = {
    "group": "billing",
    "type": "classic",
    "state": "Stable",
    "protocolType": "consumer",
    "assignor": "range",
    "epoch": None,
    "members": [MEMBER],
    "offsets": [READ, UNREAD],
    "coordinator": {"id": 1, "address": "broker:9092"},
}


@pytest.fixture
def printed(capsys):
    """The lines that a function prints, with one space between any two words."""

    def call(function, *arguments, **options):
        function(*arguments, **options)
        lines = (" ".join(line.split()) for line in capsys.readouterr().out.splitlines())
        return [line for line in lines if line]

    return call


def test_description_starts_with_a_summary(printed):
    heading, names, _, first, second = printed(
        tables.print_descriptions, [msgspec.convert(GROUP, GroupDetail)], [Section.OFFSETS]
    )
    assert heading == "billing: Stable, 1 member, range, 1,193 records behind"
    assert names == "topic partition committed end lag member host client"
    assert first == "orders 0 7 1200 1193 m-1 10.0.0.7 app"
    assert second == "gone 1 - - - - - -"


def test_members_and_state_are_optional_sections(printed):
    lines = printed(
        tables.print_descriptions,
        [msgspec.convert(GROUP, GroupDetail)],
        [Section.MEMBERS, Section.STATE],
    )
    assert "classic Stable range - 1 1 (broker:9092)" in lines
    assert "m-1 - 10.0.0.7 app 4 orders 0-2,5" in lines
    assert not any("committed" in line for line in lines)


def test_empty_group_has_no_tables(printed):
    empty = GROUP | {"state": "Empty", "assignor": "", "members": [], "offsets": []}
    lines = printed(tables.print_descriptions, [msgspec.convert(empty, GroupDetail)], list(Section))
    assert lines[0] == "billing: Empty, 0 members"
    assert "the group has no members" in lines
    assert "the group has no committed offsets and no assigned partitions" in lines
    assert printed(tables.print_offsets, []) == ["the group has no committed offsets"]


def test_offsets_are_shown_with_their_metadata(printed):
    assert "orders 0 7 1200 1193 2 note" in printed(
        tables.print_offsets, [msgspec.convert(READ, GroupOffset)]
    )


def test_empty_list_names_the_next_command(printed):
    (line,) = printed(tables.print_list, [], is_filtered=False)
    assert line.endswith("kafscale consume TOPIC --group NAME")
    (line,) = printed(tables.print_list, [], is_filtered=True)
    assert line.endswith("kafscale group list")


def test_reset_shows_offsets_before_and_after(printed):
    reset = {
        "topic": "orders",
        "partition": 0,
        "before": 10,
        "after": 4,
        "startOffset": 4,
        "endOffset": 12,
        "note": "1 is before the start",
    }
    *_, first, second = printed(
        tables.print_resets, msgspec.convert([reset, reset | {"before": None}], list[ResetRow])
    )
    assert first == "orders 0 10 4 -6 4 12 1 is before the start"
    assert second == "orders 0 - 4 - 4 12 1 is before the start"
