"""ConsumerGroupHeartbeat: how members of the new protocol join, stay, move on and leave.

One request does it all. Its epoch says what it is about: 0 joins, -1 leaves, -2 is a static member
that will be back, and any other is that of a member which is there, and wants to hear what is new.

The laws: a request is refused before it has changed anything; and an answer that tells something
new is durable, so that a crash never takes back what a member goes by.
"""

from kafscale.errors import UnreleasedInstanceError, UnsupportedAssignorError
from kafscale.groups.consumer.member import NEVER_MS, Member
from kafscale.groups.consumer.members import Roster
from kafscale.groups.consumer.reconciliation import AWAY, JOINING, LEAVING
from kafscale.groups.consumer.subscriptions import compiled
from kafscale.groups.effects import Effect, Reply
from kafscale.groups.events import ConsumerHeartbeat
from kafscale.groups.responses import Reconciled


def consumer_heartbeat(roster: Roster, event: ConsumerHeartbeat, now_ms: int) -> list[Effect]:
    if event.member_epoch in {LEAVING, AWAY}:
        return _leave(roster, event)
    offered = roster.settings.consumer_assignors
    if event.server_assignor is not None and event.server_assignor not in offered:
        raise UnsupportedAssignorError(
            f"no assignor {event.server_assignor}; there are {', '.join(offered)}"
        )
    member = _claimed(roster, event)
    profile = member.profile.told(event, roster.settings.consumer_session_timeout_ms)
    if profile.regex != member.profile.regex and profile.regex:
        compiled(profile.regex)
    if profile.regex and event.sees is not None:
        # Before the member is told anything; topics and permissions may have changed meanwhile.
        profile = profile.knowing(roster.catalogue.matching(profile.regex), event.sees)
    assigned = member.standing.assigned
    is_joining = event.member_epoch == JOINING
    owned = {} if is_joining else event.owned
    effects = roster.settle(member, profile, owned, now_ms, is_joining=is_joining)
    # It may have been a classic member, whose deadlines are not its own any more.
    member.join_by_ms = member.sync_by_ms = NEVER_MS
    standing = member.standing
    tells = is_joining or _is_complete(event) or standing.assigned != assigned
    answer = Reconciled(
        member_id=member.member_id,
        member_epoch=standing.epoch,
        heartbeat_interval_ms=roster.settings.consumer_heartbeat_interval_ms,
        assignment=standing.assigned if tells else None,
    )
    is_news = tells or standing.epoch != event.member_epoch
    return [*effects, Reply(event.ticket, answer, durable=is_news)]


def _claimed(roster: Roster, event: ConsumerHeartbeat) -> Member:
    """The member that is asking; one that joins may not be in the roster yet."""
    if event.member_epoch != JOINING:
        member = roster.identified(event.member_id, event.instance_id)
        member.standing.check_epoch(event.member_epoch, event.owned)
        return member
    seated = roster.seated(event.instance_id)
    if seated is not None and (seated.is_away or seated.profile.is_classic):
        return roster.successor(seated, event.member_id)
    if seated is not None and seated.member_id != event.member_id:
        raise UnreleasedInstanceError(f"{event.instance_id} is still the member {seated.member_id}")
    known = roster.members.get(event.member_id)
    if known is None:
        return roster.newcomer(event.member_id)
    # It joins again, as the answer to its first attempt was lost; its epoch must bear this out.
    known.standing.check_epoch(JOINING, {})
    return known


def _is_complete(event: ConsumerHeartbeat) -> bool:
    """Whether a member says everything, as it does when it may have missed an answer."""
    has_wish = event.subscribed_names is not None or event.subscribed_regex is not None
    return has_wish and event.rebalance_timeout_ms != -1 and event.owned is not None


def _leave(roster: Roster, event: ConsumerHeartbeat) -> list[Effect]:
    member = roster.identified(event.member_id, event.instance_id)
    if event.member_epoch == AWAY and event.instance_id is not None:
        effects = roster.send_away(member)
    else:
        effects = roster.remove([member], "a member left")
    # No further heartbeat is expected of it.
    answer = Reconciled(
        member_id=event.member_id, member_epoch=event.member_epoch, heartbeat_interval_ms=0
    )
    return [*effects, Reply(event.ticket, answer, durable=True)]
