"""Who is in a classic group, and what they have in common."""

import pytest

from kafscale.errors import FencedInstanceError, UnknownMemberError
from kafscale.groups.classic.member import Member
from kafscale.groups.classic.members import Roster


def member(member_id: str, *protocols: str, instance_id: str | None = None, **fields) -> Member:
    return Member(
        member_id=member_id,
        instance_id=instance_id,
        client_id="",
        client_host="",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=fields.get("rebalance_timeout_ms", 0),
        protocols=tuple((name, name.encode()) for name in protocols),
        heard_ms=0,
    )


def offers(*names: str) -> tuple[tuple[str, bytes], ...]:
    return tuple((name, b"") for name in names)


def test_the_protocol_that_most_like_best_wins_among_those_that_all_offer():
    roster = Roster(
        [
            member("a", "sticky", "range"),
            member("b", "range", "sticky"),
            member("c", "hash", "range", "sticky"),
        ]
    )
    assert roster.choose_protocol() == "range"


def test_of_two_with_as_many_votes_the_one_that_was_there_first_wins():
    assert Roster([member("a", "x", "y"), member("b", "y", "x")]).choose_protocol() == "x"


def test_whoever_goes_or_changes_counts_no_more():
    first, second = member("a", "range", "sticky"), member("b", "range")
    roster = Roster([first, second])
    assert not roster.agrees_with(offers("sticky", "hash"))
    roster.offer(second, offers("range", "sticky"))
    assert roster.agrees_with(offers("sticky"))
    roster.remove(first)
    roster.offer(second, offers("hash"))
    assert roster.agrees_with(offers("hash"))
    assert not roster.agrees_with(offers("range"))


def test_a_protocol_that_is_offered_twice_counts_once():
    roster = Roster([member("a", "range", "range"), member("b", "sticky", "range")])
    assert not roster.agrees_with(offers("sticky"))
    assert roster.choose_protocol() == "range"


def test_the_most_patient_member_decides():
    roster = Roster([member("a", rebalance_timeout_ms=5), member("b", rebalance_timeout_ms=9)])
    assert roster.rebalance_timeout_ms == 9
    assert Roster().rebalance_timeout_ms == 0


def test_members_are_found_by_what_they_say_of_themselves():
    dynamic, static = member("a"), member("b", instance_id="i")
    roster = Roster([dynamic, static])
    assert roster.find("a", None) is dynamic
    assert roster.find("b", "i") is static
    assert roster.find("b", None) is static
    assert roster.of_instance("i") is static
    assert roster.of_instance(None) is None
    assert roster.of_instance("other") is None


@pytest.mark.parametrize(
    ("member_id", "instance_id", "error"),
    [
        ("", None, UnknownMemberError),
        ("nobody", None, UnknownMemberError),
        ("a", "other", UnknownMemberError),
        ("a", "i", FencedInstanceError),
        ("nobody", "i", FencedInstanceError),
    ],
)
def test_who_is_not_who_it_says_is_told_so(member_id, instance_id, error):
    roster = Roster([member("a"), member("b", instance_id="i")])
    with pytest.raises(error):
        roster.find(member_id, instance_id)
