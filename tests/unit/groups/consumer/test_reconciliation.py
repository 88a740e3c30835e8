"""Each step of a member towards its target, and which epochs are accepted."""

import pytest

from kafscale.errors import FencedMemberEpochError
from kafscale.groups.consumer.reconciliation import MemberAssignment
from unit.groups.consumer.driver import partitions


def step(state_line, *, target, epoch, owned=None, is_joining=False, owned_by_others=()):
    return state_line.reconciled(
        target=target,
        target_epoch=epoch,
        owned=owned,
        is_joining=is_joining,
        unowned=lambda resolve: {
            topic: rest
            for topic, numbers in resolve.items()
            if (rest := numbers - set(owned_by_others))
        },
    )


def test_new_member_gets_unowned_partitions():
    assert step(MemberAssignment(), target=partitions(x=(0, 1)), epoch=1) == MemberAssignment(
        epoch=1, previous_epoch=0, assigned=partitions(x=(0, 1))
    )


def test_partitions_of_others_follow_in_the_same_epoch():
    waiting = step(MemberAssignment(), target=partitions(x=(0, 1)), epoch=1, owned_by_others=[1])
    assert waiting == MemberAssignment(epoch=1, previous_epoch=0, assigned=partitions(x=(0,)))
    assert step(waiting, target=partitions(x=(0, 1)), epoch=1, owned_by_others=[0, 1]) is waiting
    assert step(
        waiting, target=partitions(x=(0, 1)), epoch=1, owned_by_others=[0]
    ) == MemberAssignment(epoch=1, previous_epoch=1, assigned=partitions(x=(0, 1)))


def test_member_revokes_before_it_advances():
    owner = MemberAssignment(epoch=3, previous_epoch=2, assigned=partitions(x=(0, 1)))
    target = partitions(x=(1, 2))
    revoking = step(owner, target=target, epoch=5)
    assert revoking == MemberAssignment(
        epoch=3, previous_epoch=3, assigned=partitions(x=(1,)), revoking=partitions(x=(0,))
    )
    assert step(revoking, target=target, epoch=5) is revoking
    assert step(revoking, target=target, epoch=5, owned=partitions(x=(0, 1))) is revoking
    assert step(revoking, target=target, epoch=5, owned=partitions(x=(1,))) == MemberAssignment(
        epoch=5, previous_epoch=3, assigned=target
    )


def test_changed_target_may_need_another_revocation():
    revoking = MemberAssignment(epoch=3, assigned=partitions(x=(1,)), revoking=partitions(x=(0,)))
    assert step(
        revoking, target=partitions(y=(0,)), epoch=9, owned=partitions(x=(1,))
    ) == MemberAssignment(epoch=4, previous_epoch=3, revoking=partitions(x=(1,)))


def test_partitions_not_yet_taken_up_are_revoked_too():
    """It may be taking it up: its report is from before its last assignment."""
    owner = MemberAssignment(epoch=3, assigned=partitions(x=(0, 1)))
    revoking = step(owner, target=partitions(x=(1,)), epoch=4, owned={})
    assert revoking == MemberAssignment(
        epoch=3, previous_epoch=3, assigned=partitions(x=(1,)), revoking=partitions(x=(0,))
    )
    assert (
        step(revoking, target=partitions(x=(1,)), epoch=4, owned=partitions(x=(0, 1))) is revoking
    )
    assert step(
        revoking, target=partitions(x=(1,)), epoch=4, owned=partitions(x=(1,))
    ) == MemberAssignment(epoch=4, previous_epoch=3, assigned=partitions(x=(1,)))


def test_member_that_owns_only_what_it_keeps_advances():
    """Clients do not respond to an assignment that they have already."""
    owner = MemberAssignment(epoch=3, assigned=partitions(x=(0, 1)))
    assert step(
        owner, target=partitions(x=(1,)), epoch=4, owned=partitions(x=(1,))
    ) == MemberAssignment(epoch=4, previous_epoch=3, assigned=partitions(x=(1,)))
    assert step(owner, target={}, epoch=4, owned={}) == MemberAssignment(epoch=4, previous_epoch=3)


def test_joining_member_needs_no_revocation():
    owner = MemberAssignment(epoch=3, assigned=partitions(x=(0, 1)))
    assert step(
        owner, target=partitions(x=(1,)), epoch=4, owned={}, is_joining=True
    ) == MemberAssignment(epoch=4, previous_epoch=3, assigned=partitions(x=(1,)))


@pytest.mark.parametrize(
    ("epoch", "owned", "is_believed"),
    [
        (5, None, True),
        (4, partitions(x=(0,)), True),
        (4, {}, True),
        (4, None, False),
        (4, partitions(x=(0, 9)), False),
        (4, partitions(y=(0,)), False),
        (3, {}, False),
        (6, {}, False),
    ],
)
def test_check_epoch_accepts_current_or_previous_after_a_lost_response(epoch, owned, is_believed):
    state_line = MemberAssignment(epoch=5, previous_epoch=4, assigned=partitions(x=(0, 1)))
    if is_believed:
        state_line.check_epoch(epoch, owned)
    else:
        with pytest.raises(FencedMemberEpochError):
            state_line.check_epoch(epoch, owned)
