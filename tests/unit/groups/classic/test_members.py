"""The members of a classic group, and the protocols they share."""

import pytest

from kafscale.errors import FencedInstanceError, UnknownMemberError
from kafscale.groups.classic.member import Member
from kafscale.groups.classic.members import Members


def member(member_id: str, *protocols: str, instance_id: str | None = None, **fields) -> Member:
    return Member(
        member_id=member_id,
        instance_id=instance_id,
        client_id="",
        client_host="",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=fields.get("rebalance_timeout_ms", 0),
        protocols=tuple((name, name.encode()) for name in protocols),
        heartbeat_ms=0,
    )


def offers(*names: str) -> tuple[tuple[str, bytes], ...]:
    return tuple((name, b"") for name in names)


def test_choose_protocol_by_majority_of_preferences():
    members = Members(
        [
            member("a", "sticky", "range"),
            member("b", "range", "sticky"),
            member("c", "hash", "range", "sticky"),
        ]
    )
    assert members.choose_protocol() == "range"


def test_choose_protocol_breaks_ties_by_order():
    assert Members([member("a", "x", "y"), member("b", "y", "x")]).choose_protocol() == "x"


def test_protocols_of_removed_or_changed_members_do_not_count():
    first, second = member("a", "range", "sticky"), member("b", "range")
    members = Members([first, second])
    assert not members.supports_any(offers("sticky", "hash"))
    members.update_protocols(second, offers("range", "sticky"))
    assert members.supports_any(offers("sticky"))
    members.remove(first)
    members.update_protocols(second, offers("hash"))
    assert members.supports_any(offers("hash"))
    assert not members.supports_any(offers("range"))


def test_duplicate_protocol_counts_once():
    members = Members([member("a", "range", "range"), member("b", "sticky", "range")])
    assert not members.supports_any(offers("sticky"))
    assert members.choose_protocol() == "range"


def test_rebalance_timeout_is_the_longest():
    members = Members([member("a", rebalance_timeout_ms=5), member("b", rebalance_timeout_ms=9)])
    assert members.rebalance_timeout_ms == 9
    assert Members().rebalance_timeout_ms == 0


def test_members_are_found_by_id_and_instance():
    dynamic, static = member("a"), member("b", instance_id="i")
    members = Members([dynamic, static])
    assert members.member_or_raise("a", None) is dynamic
    assert members.member_or_raise("b", "i") is static
    assert members.member_or_raise("b", None) is static
    assert members.static_member("i") is static
    assert members.static_member(None) is None
    assert members.static_member("other") is None


@pytest.mark.parametrize(
    ("member_id", "instance_id", "error"),
    [
        ("", None, UnknownMemberError),
        ("unknown", None, UnknownMemberError),
        ("a", "other", UnknownMemberError),
        ("a", "i", FencedInstanceError),
        ("unknown", "i", FencedInstanceError),
    ],
)
def test_wrong_identity_raises(member_id, instance_id, error):
    members = Members([member("a"), member("b", instance_id="i")])
    with pytest.raises(error):
        members.member_or_raise(member_id, instance_id)
