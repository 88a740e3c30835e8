"""`Member`: one member of a consumer group, with its deadlines.

The law: whatever a deadline is for, missing it means to be removed. A heartbeat moves the session's
and nothing else.
"""

from typing import Final

import msgspec

from kafscale.groups.consumer.member_metadata import Profile
from kafscale.groups.consumer.reconciliation import AWAY, JOINING, Standing
from kafscale.groups.model import MemberRecord, Partitions

NEVER_MS: Final = 2**63 - 1


class Member(msgspec.Struct, kw_only=True):
    """Who it is, where it stands, and where it is to go."""

    member_id: str
    profile: Profile = Profile()
    standing: Standing = Standing()
    target: Partitions = {}

    heartbeat_ms: int = 0
    revoke_by_ms: int = NEVER_MS
    """When it must have given up what it has been asked to."""
    join_by_ms: int = NEVER_MS
    """Classic: when it must have joined again, since it was told to."""
    sync_by_ms: int = NEVER_MS
    """Classic: when it must have fetched its assignment, since it joined."""

    @property
    def is_away(self) -> bool:
        return self.standing.epoch == AWAY

    @property
    def deadline_ms(self) -> int:
        session_ms = self.heartbeat_ms + self.profile.session_timeout_ms
        return min(session_ms, self.revoke_by_ms, self.join_by_ms, self.sync_by_ms)

    def missed(self, now_ms: int) -> str | None:
        """Which deadline it has missed, in words."""
        if self.heartbeat_ms + self.profile.session_timeout_ms <= now_ms:
            return "a member's session expired"
        if self.revoke_by_ms <= now_ms:
            return "a member did not give up its partitions in time"
        if self.join_by_ms <= now_ms:
            return "a classic member did not join again in time"
        if self.sync_by_ms <= now_ms:
            return "a classic member did not fetch its assignment in time"
        return None

    def successor(self, member_id: str) -> "Member":
        """A static member under the id of its next incarnation, which has to be told everything."""
        standing = msgspec.structs.replace(self.standing, epoch=JOINING, previous_epoch=JOINING)
        return Member(
            member_id=member_id, profile=self.profile, standing=standing, target=self.target
        )

    def record(self) -> MemberRecord:
        profile, standing = self.profile, self.standing
        return MemberRecord(
            member_id=self.member_id,
            instance_id=profile.instance_id,
            client_id=profile.client_id,
            client_host=profile.client_host,
            heartbeat_ms=self.heartbeat_ms,
            session_timeout_ms=profile.session_timeout_ms,
            rebalance_timeout_ms=profile.rebalance_timeout_ms,
            protocols=profile.protocols,
            is_classic=profile.is_classic,
            rack_id=profile.rack_id,
            member_epoch=standing.epoch,
            previous_member_epoch=standing.previous_epoch,
            subscribed_names=tuple(sorted(profile.names)),
            subscribed_regex=profile.regex,
            server_assignor=profile.server_assignor,
            assigned=standing.assigned,
            revoking=standing.revoking,
            target=self.target,
        )


def restored(record: MemberRecord, session_timeout_ms: int, now_ms: int) -> Member:
    """A member as it was recorded; its deadlines begin again."""
    profile = Profile(
        instance_id=record.instance_id,
        client_id=record.client_id,
        client_host=record.client_host,
        rack_id=record.rack_id,
        names=frozenset(record.subscribed_names),
        regex=record.subscribed_regex,
        server_assignor=record.server_assignor,
        session_timeout_ms=record.session_timeout_ms if record.is_classic else session_timeout_ms,
        rebalance_timeout_ms=record.rebalance_timeout_ms,
        protocols=record.protocols if record.is_classic else (),
    )
    standing = Standing(
        epoch=record.member_epoch,
        previous_epoch=record.previous_member_epoch,
        assigned=record.assigned,
        revoking=record.revoking,
    )
    is_timed = bool(record.revoking) and not record.is_classic
    return Member(
        member_id=record.member_id,
        profile=profile,
        standing=standing,
        target=record.target,
        heartbeat_ms=now_ms,
        revoke_by_ms=now_ms + record.rebalance_timeout_ms if is_timed else NEVER_MS,
    )
