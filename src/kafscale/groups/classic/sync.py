"""SyncGroup: the leader sends its assignments, and each member gets its own.

Invariant: the bytes are the leader's, unchanged, and no member gets them before they are stored.
"""

from kafscale.errors import InconsistentProtocolError, RebalanceInProgressError
from kafscale.groups.classic.group_state import GroupState, State
from kafscale.groups.classic.heartbeat import member_in_generation
from kafscale.groups.classic.member import Member
from kafscale.groups.effects import NO_REPLY_TOKEN
from kafscale.groups.events import Sync
from kafscale.groups.responses import Synced


def sync_preparing(group: GroupState, event: Sync, now_ms: int) -> None:
    """Too late: the next generation is being prepared."""
    group.record_heartbeat(_member_to_sync(group, event), now_ms)
    raise RebalanceInProgressError(group.reason)


def sync_completing(group: GroupState, event: Sync, now_ms: int) -> None:
    """Followers wait for the leader. A second Sync replaces the first, as with Join."""
    member = _member_to_sync(group, event)
    group.reply(
        member.sync_reply_token, RebalanceInProgressError("the member has sent another SyncGroup")
    )
    member.sync_reply_token = event.reply_token
    member.has_synced = True
    if member.member_id != group.leader:
        return
    group.transition_to(State.STABLE, now_ms)
    for other in group.members:
        other.assignment = event.assignments.get(other.member_id, b"")
        if other.sync_reply_token != NO_REPLY_TOKEN:
            _send_assignment(group, other, other.sync_reply_token, now_ms)


def sync_stable(group: GroupState, event: Sync, now_ms: int) -> None:
    """The stored assignment, however often it is requested."""
    member = _member_to_sync(group, event)
    member.has_synced = True
    _send_assignment(group, member, event.reply_token, now_ms)


def _send_assignment(group: GroupState, member: Member, reply_token: int, now_ms: int) -> None:
    response = Synced(
        protocol_type=group.protocol_type, protocol=group.protocol, assignment=member.assignment
    )
    group.reply(reply_token, response, is_durable=True)
    member.sync_reply_token = NO_REPLY_TOKEN
    group.record_heartbeat(member, now_ms)


def _member_to_sync(group: GroupState, event: Sync) -> Member:
    """The member, which has to know the selected protocol of its generation."""
    member = member_in_generation(group, event.member_id, event.instance_id, event.generation)
    if event.protocol_type not in {None, group.protocol_type}:
        raise InconsistentProtocolError(f"the group's protocol type is {group.protocol_type}")
    if event.protocol not in {None, group.protocol}:
        raise InconsistentProtocolError(f"the group's protocol is {group.protocol}")
    return member
