"""`Member`: one member of a consumer group, with its deadlines.

Invariant: a member that misses any of its deadlines is removed. A heartbeat extends the session
timeout and nothing else.
"""

from typing import Final

import msgspec

from kafscale.groups.consumer.member_metadata import MemberMetadata
from kafscale.groups.consumer.reconciliation import JOIN_EPOCH, STATIC_LEAVE_EPOCH, MemberAssignment
from kafscale.groups.model import MemberRecord, Partitions

NEVER_MS: Final = 2**63 - 1


class Member(msgspec.Struct, kw_only=True):
    """Its metadata, current assignment and target assignment."""

    member_id: str
    metadata: MemberMetadata = MemberMetadata()
    assignment: MemberAssignment = MemberAssignment()
    target: Partitions = {}

    heartbeat_ms: int = 0
    revoke_by_ms: int = NEVER_MS
    """When it must have revoked what it was asked to."""
    join_by_ms: int = NEVER_MS
    """Classic: when it must have rejoined, after it was asked to."""
    sync_by_ms: int = NEVER_MS
    """Classic: when it must have synced, after it joined."""

    @property
    def has_left_temporarily(self) -> bool:
        return self.assignment.epoch == STATIC_LEAVE_EPOCH

    @property
    def deadline_ms(self) -> int:
        session_ms = self.heartbeat_ms + self.metadata.session_timeout_ms
        return min(session_ms, self.revoke_by_ms, self.join_by_ms, self.sync_by_ms)

    def missed(self, now_ms: int) -> str | None:
        """The deadline that it has missed, as a reason."""
        if self.heartbeat_ms + self.metadata.session_timeout_ms <= now_ms:
            return "a member's session expired"
        if self.revoke_by_ms <= now_ms:
            return "a member did not revoke its partitions in time"
        if self.join_by_ms <= now_ms:
            return "a classic member did not rejoin in time"
        if self.sync_by_ms <= now_ms:
            return "a classic member did not sync in time"
        return None

    def successor(self, member_id: str) -> "Member":
        """The static member with the id of its next process, which gets its full assignment."""
        assignment = msgspec.structs.replace(
            self.assignment, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH
        )
        return Member(
            member_id=member_id, metadata=self.metadata, assignment=assignment, target=self.target
        )

    def record(self) -> MemberRecord:
        metadata, assignment = self.metadata, self.assignment
        return MemberRecord(
            member_id=self.member_id,
            instance_id=metadata.instance_id,
            client_id=metadata.client_id,
            client_host=metadata.client_host,
            heartbeat_ms=self.heartbeat_ms,
            session_timeout_ms=metadata.session_timeout_ms,
            rebalance_timeout_ms=metadata.rebalance_timeout_ms,
            protocols=metadata.protocols,
            is_classic=metadata.is_classic,
            rack_id=metadata.rack_id,
            member_epoch=assignment.epoch,
            previous_member_epoch=assignment.previous_epoch,
            subscribed_names=tuple(sorted(metadata.names)),
            subscribed_regex=metadata.regex,
            server_assignor=metadata.server_assignor,
            assigned=assignment.assigned,
            revoking=assignment.revoking,
            target=self.target,
        )


def restored(record: MemberRecord, session_timeout_ms: int, now_ms: int) -> Member:
    """The recorded member; its deadlines start again."""
    metadata = MemberMetadata(
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
    assignment = MemberAssignment(
        epoch=record.member_epoch,
        previous_epoch=record.previous_member_epoch,
        assigned=record.assigned,
        revoking=record.revoking,
    )
    is_timed = bool(record.revoking) and not record.is_classic
    return Member(
        member_id=record.member_id,
        metadata=metadata,
        assignment=assignment,
        target=record.target,
        heartbeat_ms=now_ms,
        revoke_by_ms=now_ms + record.rebalance_timeout_ms if is_timed else NEVER_MS,
    )
