"""Join: somebody wants to be in the next generation.

A Join means one of three things, which `whose` tells apart after it has refused what may not be:
a newcomer, somebody with an id, or a static instance that has begun again and forgotten its own.
What is then done is up to the state, as the table of transitions says.

Who joins while the group prepares is not saved yet: the generation that begins with it will be. A
crash in between makes it join again, which costs less than a record of all for each that comes.
"""

import msgspec

from kafscale.errors import (
    FencedInstanceError,
    GroupFullError,
    InconsistentProtocolError,
    InvalidSessionTimeoutError,
    MemberIdRequiredError,
    RebalanceInProgressError,
)
from kafscale.groups.classic.group_state import Standing
from kafscale.groups.classic.member import Member
from kafscale.groups.classic.rebalance import forget, go_on, prepare
from kafscale.groups.classic.state import State
from kafscale.groups.classic.step import Step
from kafscale.groups.events import Join


def whose(standing: Standing, event: Join, now_ms: int) -> Step:
    """Which step a Join is; raises if it may not be taken."""
    settings = standing.settings
    timeout_ms = event.session_timeout_ms
    if not settings.session_timeout_ms_min <= timeout_ms <= settings.session_timeout_ms_max:
        raise InvalidSessionTimeoutError(f"{timeout_ms} ms is no session timeout here")
    if standing.state is State.DEAD:
        return Step.REJOIN if event.member_id else Step.NEWCOMER
    roster = standing.roster
    known = (
        roster.get(event.member_id) if event.member_id else roster.of_instance(event.instance_id)
    )
    if not _has_room(standing, known):
        if known is not None:
            forget(standing, known)
            go_on(standing, now_ms)
        raise GroupFullError(f"the group may have {settings.size_max} members")
    if not _is_compatible(standing, event):
        raise InconsistentProtocolError("there is no protocol in common with the group")
    if not event.member_id:
        return Step.NEWCOMER if known is None else Step.RETURN
    is_expected = event.member_id in roster.promised and event.instance_id is None
    return Step.NEWCOMER if is_expected else Step.REJOIN


# --- newcomers ----------------------------------------------------------------------------------


def come(standing: Standing, event: Join, now_ms: int) -> None:
    """In a group with a generation, or without: everybody has to join."""
    member = _enter(standing, event, now_ms)
    prepare(standing, _because(f"member {member.member_id} has joined", event), now_ms)


def come_preparing(standing: Standing, event: Join, now_ms: int) -> None:
    """The members are being called together anyway; in a new group, more may follow."""
    _enter(standing, event, now_ms)
    if standing.delay is not None:
        standing.delay.has_newcomer = True
    go_on(standing, now_ms)


def _enter(standing: Standing, event: Join, now_ms: int) -> Member:
    """Put a newcomer on the roster, unless it has to learn its id first."""
    roster = standing.roster
    if not event.member_id and event.must_know_id and event.instance_id is None:
        roster.promised[event.fresh_id] = now_ms + event.session_timeout_ms
        standing.remind(roster.promised[event.fresh_id])
        raise MemberIdRequiredError(event.fresh_id)
    if not roster:
        standing.protocol_type = event.protocol_type
    member = _described(event, event.member_id or event.fresh_id, now_ms)
    member.is_newcomer = True
    member.join_ticket = event.ticket
    roster.add(member)
    standing.remind(member.expires_ms)
    return member


# --- members that are known ---------------------------------------------------------------------


def rejoin_preparing(standing: Standing, event: Join, now_ms: int) -> None:
    """One less to wait for."""
    _renew(standing, event)
    go_on(standing, now_ms)


def rejoin_completing(standing: Standing, event: Join, now_ms: int) -> None:
    """It may have missed the answer, and gets it again; what it offers now may be another thing."""
    member = standing.roster.find(event.member_id, event.instance_id)
    if member.protocols == event.protocols:
        standing.hear(member, now_ms)
        standing.reply(event.ticket, standing.joined(member))
    else:
        _renew(standing, event)
        prepare(standing, _because(f"member {member.member_id} has changed", event), now_ms)


def rejoin_stable(standing: Standing, event: Join, now_ms: int) -> None:
    """The leader joins to assign anew, whatever it has seen; the others only if they change."""
    if event.member_id == standing.leader:
        _renew(standing, event)
        prepare(standing, _because(f"leader {event.member_id} has joined again", event), now_ms)
    else:
        rejoin_completing(standing, event, now_ms)


def _renew(standing: Standing, event: Join) -> None:
    """Take a member's description from its Join, and let it wait.

    An older Join of the same member is nobody's any more, most likely one of a lost connection:
    Kafka leaves it without an answer, here it is told to join again.
    """
    member = standing.roster.find(event.member_id, event.instance_id)
    standing.reply(member.join_ticket, RebalanceInProgressError("the member has joined again"))
    standing.roster.offer(member, event.protocols)
    member.session_timeout_ms = event.session_timeout_ms
    member.rebalance_timeout_ms = event.rebalance_timeout_ms
    member.join_ticket = event.ticket


# --- static members that return under a new id --------------------------------------------------


def return_preparing(standing: Standing, event: Join, now_ms: int) -> None:
    _replace(standing, event, now_ms).join_ticket = event.ticket
    go_on(standing, now_ms)


def return_completing(standing: Standing, event: Join, now_ms: int) -> None:
    """The leader assigns to the old id just now, so that it has to do so again."""
    member = _replace(standing, event, now_ms)
    member.join_ticket = event.ticket
    prepare(standing, _because(f"instance {member.instance_id} has returned", event), now_ms)


def return_stable(standing: Standing, event: Join, now_ms: int) -> None:
    """Whoever returns in time takes up what it had, and nobody else notices (KIP-345).

    Kafka looks at the choice of the protocol only, not at the metadata: a sticky assignor's is
    another after every start. A leader that returns would assign anew if it were told that it
    leads, for all that it knows; so it is told to skip that (KIP-814) or, if it is too old to
    understand, that its former self leads.
    """
    former_leader = standing.leader
    member = _replace(standing, event, now_ms)
    if standing.roster.choose_protocol() != standing.protocol:
        member.join_ticket = event.ticket
        prepare(standing, _because(f"instance {member.instance_id} has changed", event), now_ms)
        return
    is_leader = member.member_id == standing.leader
    answer = standing.joined(member, is_skipping=is_leader)
    if is_leader and not event.can_skip_assignment:
        answer = msgspec.structs.replace(
            answer, leader=former_leader, members=(), skip_assignment=False
        )
    standing.reply(event.ticket, answer, is_durable=True)


def _replace(standing: Standing, event: Join, now_ms: int) -> Member:
    """Give an instance's place to a new member; the old one is fenced."""
    old = standing.roster.of_instance(event.instance_id)
    assert old is not None
    forget(standing, old, FencedInstanceError)
    member = _described(event, event.fresh_id, now_ms)
    member.assignment = old.assignment
    member.has_synced = old.has_synced
    standing.roster.add(member)
    standing.remind(member.expires_ms)
    if standing.leader == old.member_id:
        standing.leader = member.member_id
    return member


# --- what all of them have in common ------------------------------------------------------------


def _has_room(standing: Standing, known: Member | None) -> bool:
    """Whether one more may join: while a group prepares, only those who have come are counted.

    So the last to rejoin are those who go, when a group has become larger than it may be.
    """
    roster, size_max = standing.roster, standing.settings.size_max
    if standing.state is not State.PREPARING:
        return known is not None or len(roster) < size_max
    if known is not None and known.has_joined:
        return True
    return len(roster) < size_max or sum(member.has_joined for member in roster) < size_max


def _is_compatible(standing: Standing, event: Join) -> bool:
    if standing.state is State.EMPTY:
        return bool(event.protocol_type and event.protocols)
    same_type = event.protocol_type == standing.protocol_type
    return same_type and standing.roster.agrees_with(event.protocols)


def _described(event: Join, member_id: str, now_ms: int) -> Member:
    return Member(
        member_id=member_id,
        instance_id=event.instance_id,
        client_id=event.client_id,
        client_host=event.client_host,
        session_timeout_ms=event.session_timeout_ms,
        rebalance_timeout_ms=event.rebalance_timeout_ms,
        protocols=event.protocols,
        heard_ms=now_ms,
    )


def _because(what: str, event: Join) -> str:
    return f"{what}: {event.reason}" if event.reason else what
