"""ConsumerGroupHeartbeat: members of the consumer protocol join, stay, reconcile and leave.

The epoch distinguishes requests: 0 joins, -1 leaves, -2 is a static member that leaves temporarily,
and any other epoch is a heartbeat of a member.

Invariants: a request is rejected before it has changed anything. A response with news is durable,
so that a crash never undoes what a member relies on.
"""

from kafscale.errors import UnreleasedInstanceError, UnsupportedAssignorError
from kafscale.groups.consumer.group_state import GroupState
from kafscale.groups.consumer.member import NEVER_MS, Member
from kafscale.groups.consumer.reconciliation import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from kafscale.groups.consumer.subscriptions import compiled
from kafscale.groups.effects import Effect, Reconciled, Reply
from kafscale.groups.events import ConsumerHeartbeat


def consumer_heartbeat(group: GroupState, event: ConsumerHeartbeat, now_ms: int) -> list[Effect]:
    if event.member_epoch in {LEAVE_EPOCH, STATIC_LEAVE_EPOCH}:
        return _leave(group, event)
    offered = group.settings.consumer_assignors
    if event.server_assignor is not None and event.server_assignor not in offered:
        raise UnsupportedAssignorError(
            f"ServerAssignor {event.server_assignor} is not supported. Supported assignors:"
            f" {', '.join(offered)}."
        )
    member = _find_or_create_member(group, event)
    metadata = member.metadata.after_heartbeat(event, group.settings.consumer_session_timeout_ms)
    if metadata.regex != member.metadata.regex and metadata.regex:
        compiled(metadata.regex)
    if metadata.regex and event.can_describe is not None:
        # Before the response; topics and permissions may have changed meanwhile.
        metadata = metadata.with_visible_topics(
            group.subscriptions.matching(metadata.regex), event.can_describe
        )
    assigned = member.assignment.assigned
    is_joining = event.member_epoch == JOIN_EPOCH
    owned = {} if is_joining else event.owned
    effects = group.update_member(member, metadata, owned, now_ms, is_joining=is_joining)
    # It may have been a classic member, whose deadlines do not apply any more.
    member.join_by_ms = member.sync_by_ms = NEVER_MS
    assignment = member.assignment
    includes_assignment = is_joining or _is_full_request(event) or assignment.assigned != assigned
    response = Reconciled(
        member_id=member.member_id,
        member_epoch=assignment.epoch,
        heartbeat_interval_ms=group.settings.consumer_heartbeat_interval_ms,
        assignment=assignment.assigned if includes_assignment else None,
    )
    is_new = includes_assignment or assignment.epoch != event.member_epoch
    return [*effects, Reply(event.reply_token, response, is_durable=is_new)]


def _find_or_create_member(group: GroupState, event: ConsumerHeartbeat) -> Member:
    """The member of this request; one that joins may not be in the group yet."""
    if event.member_epoch != JOIN_EPOCH:
        member = group.member_or_raise(event.member_id, event.instance_id)
        member.assignment.check_epoch(event.member_epoch, event.owned)
        return member
    static_member = group.static_member(event.instance_id)
    if static_member is not None and (
        static_member.has_left_temporarily or static_member.metadata.is_classic
    ):
        return group.successor(static_member, event.member_id)
    if static_member is not None and static_member.member_id != event.member_id:
        raise UnreleasedInstanceError(
            f"Static member {event.member_id} with instance id {event.instance_id} cannot join the"
            f" group because the instance id is owned by {static_member.member_id} member."
        )
    known = group.members.get(event.member_id)
    if known is None:
        return group.new_member(event.member_id)
    # It joins again, as the response to its first join was lost; its epoch must confirm this.
    known.assignment.check_epoch(JOIN_EPOCH, {})
    return known


def _is_full_request(event: ConsumerHeartbeat) -> bool:
    """Whether a member sends everything, as after a lost response."""
    has_subscription = event.subscribed_names is not None or event.subscribed_regex is not None
    return has_subscription and event.rebalance_timeout_ms != -1 and event.owned is not None


def _leave(group: GroupState, event: ConsumerHeartbeat) -> list[Effect]:
    member = group.member_or_raise(event.member_id, event.instance_id)
    if event.member_epoch == STATIC_LEAVE_EPOCH and event.instance_id is not None:
        effects = group.leave_temporarily(member)
    else:
        effects = group.remove([member], "a member left")
    # No further heartbeat is expected.
    response = Reconciled(
        member_id=event.member_id, member_epoch=event.member_epoch, heartbeat_interval_ms=0
    )
    return [*effects, Reply(event.reply_token, response, is_durable=True)]
