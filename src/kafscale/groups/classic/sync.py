"""Sync: the leader hands in what it has assigned, and everybody gets its own part.

The law: the bytes are the leader's, untouched, and nobody has them before they are in the store.
"""

from kafscale.errors import InconsistentProtocolError, RebalanceInProgressError
from kafscale.groups.classic.group_state import Standing
from kafscale.groups.classic.heartbeat import present
from kafscale.groups.classic.member import Member
from kafscale.groups.classic.state import State
from kafscale.groups.effects import NO_TICKET
from kafscale.groups.events import Sync
from kafscale.groups.responses import Synced


def sync_preparing(standing: Standing, event: Sync, now_ms: int) -> None:
    """Too late: the next generation is on its way."""
    standing.hear(_syncing(standing, event), now_ms)
    raise RebalanceInProgressError(standing.reason)


def sync_completing(standing: Standing, event: Sync, now_ms: int) -> None:
    """Followers wait for the leader. A second Sync takes the place of the first, as with Join."""
    member = _syncing(standing, event)
    standing.reply(member.sync_ticket, RebalanceInProgressError("the member has synced again"))
    member.sync_ticket = event.ticket
    member.has_synced = True
    if member.member_id != standing.leader:
        return
    standing.move_to(State.STABLE, now_ms)
    for each in standing.roster:
        each.assignment = event.assignments.get(each.member_id, b"")
        if each.sync_ticket != NO_TICKET:
            _hand_out(standing, each, each.sync_ticket, now_ms)


def sync_stable(standing: Standing, event: Sync, now_ms: int) -> None:
    """As it was assigned, however often it is asked for."""
    member = _syncing(standing, event)
    member.has_synced = True
    _hand_out(standing, member, event.ticket, now_ms)


def _hand_out(standing: Standing, member: Member, ticket: int, now_ms: int) -> None:
    answer = Synced(
        protocol_type=standing.protocol_type,
        protocol=standing.protocol,
        assignment=member.assignment,
    )
    standing.reply(ticket, answer, is_durable=True)
    member.sync_ticket = NO_TICKET
    standing.hear(member, now_ms)


def _syncing(standing: Standing, event: Sync) -> Member:
    """The member, which has to know what was chosen in its generation."""
    member = present(standing, event.member_id, event.instance_id, event.generation)
    if event.protocol_type not in {None, standing.protocol_type}:
        raise InconsistentProtocolError(f"the group's protocols are {standing.protocol_type}")
    if event.protocol not in {None, standing.protocol}:
        raise InconsistentProtocolError(f"the group's protocol is {standing.protocol}")
    return member
