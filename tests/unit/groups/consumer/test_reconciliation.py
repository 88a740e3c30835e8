"""Each step of a member towards its target, and which epochs are believed."""

import pytest

from kafscale.errors import FencedMemberEpochError
from kafscale.groups.consumer.reconciliation import Standing
from unit.groups.consumer.driver import parts


def step(standing, *, target, epoch, owned=None, is_joining=False, held=()):
    return standing.reconciled(
        target=target,
        target_epoch=epoch,
        owned=owned,
        is_joining=is_joining,
        free=lambda wanted: {
            topic: rest for topic, numbers in wanted.items() if (rest := numbers - set(held))
        },
    )


def test_a_new_member_gets_what_is_free():
    assert step(Standing(), target=parts(x=(0, 1)), epoch=1) == Standing(
        epoch=1, previous_epoch=0, assigned=parts(x=(0, 1))
    )


def test_what_others_hold_comes_later_in_the_same_epoch():
    waiting = step(Standing(), target=parts(x=(0, 1)), epoch=1, held=[1])
    assert waiting == Standing(epoch=1, previous_epoch=0, assigned=parts(x=(0,)))
    assert step(waiting, target=parts(x=(0, 1)), epoch=1, held=[0, 1]) is waiting
    assert step(waiting, target=parts(x=(0, 1)), epoch=1, held=[0]) == Standing(
        epoch=1, previous_epoch=1, assigned=parts(x=(0, 1))
    )


def test_a_member_gives_up_before_it_moves_on():
    owner = Standing(epoch=3, previous_epoch=2, assigned=parts(x=(0, 1)))
    target = parts(x=(1, 2))
    revoking = step(owner, target=target, epoch=5)
    assert revoking == Standing(
        epoch=3, previous_epoch=3, assigned=parts(x=(1,)), revoking=parts(x=(0,))
    )
    assert step(revoking, target=target, epoch=5) is revoking
    assert step(revoking, target=target, epoch=5, owned=parts(x=(0, 1))) is revoking
    assert step(revoking, target=target, epoch=5, owned=parts(x=(1,))) == Standing(
        epoch=5, previous_epoch=3, assigned=target
    )


def test_a_target_that_changed_meanwhile_may_take_another_round():
    revoking = Standing(epoch=3, assigned=parts(x=(1,)), revoking=parts(x=(0,)))
    assert step(revoking, target=parts(y=(0,)), epoch=9, owned=parts(x=(1,))) == Standing(
        epoch=4, previous_epoch=3, revoking=parts(x=(1,))
    )


def test_what_a_member_owns_not_yet_is_asked_back_too():
    """It may be taking it up: it says what it owned before it heard of its last assignment."""
    owner = Standing(epoch=3, assigned=parts(x=(0, 1)))
    revoking = step(owner, target=parts(x=(1,)), epoch=4, owned={})
    assert revoking == Standing(
        epoch=3, previous_epoch=3, assigned=parts(x=(1,)), revoking=parts(x=(0,))
    )
    assert step(revoking, target=parts(x=(1,)), epoch=4, owned=parts(x=(0, 1))) is revoking
    assert step(revoking, target=parts(x=(1,)), epoch=4, owned=parts(x=(1,))) == Standing(
        epoch=4, previous_epoch=3, assigned=parts(x=(1,))
    )


def test_a_member_that_owns_no_more_than_it_may_keep_needs_not_be_asked():
    """Clients say nothing of an assignment which is the one that they have."""
    owner = Standing(epoch=3, assigned=parts(x=(0, 1)))
    assert step(owner, target=parts(x=(1,)), epoch=4, owned=parts(x=(1,))) == Standing(
        epoch=4, previous_epoch=3, assigned=parts(x=(1,))
    )
    assert step(owner, target={}, epoch=4, owned={}) == Standing(epoch=4, previous_epoch=3)


def test_what_a_member_does_not_own_when_it_joins_needs_not_be_asked_back():
    owner = Standing(epoch=3, assigned=parts(x=(0, 1)))
    assert step(owner, target=parts(x=(1,)), epoch=4, owned={}, is_joining=True) == Standing(
        epoch=4, previous_epoch=3, assigned=parts(x=(1,))
    )


@pytest.mark.parametrize(
    ("epoch", "owned", "is_believed"),
    [
        (5, None, True),
        (4, parts(x=(0,)), True),
        (4, {}, True),
        (4, None, False),
        (4, parts(x=(0, 9)), False),
        (4, parts(y=(0,)), False),
        (3, {}, False),
        (6, {}, False),
    ],
)
def test_an_epoch_is_believed_if_it_was_told_last_or_the_answer_was_lost(epoch, owned, is_believed):
    standing = Standing(epoch=5, previous_epoch=4, assigned=parts(x=(0, 1)))
    if is_believed:
        standing.check_epoch(epoch, owned)
    else:
        with pytest.raises(FencedMemberEpochError):
            standing.check_epoch(epoch, owned)
