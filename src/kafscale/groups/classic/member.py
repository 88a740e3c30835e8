"""One member of a classic group: who it is, what it offers, and what it waits for.

The law: a member's session ends a while after it was last heard of, but never while it waits for
an answer of ours. Only a newcomer's does even then: it may have gone away long ago, without ever
having learnt the id under which it could have left.
"""

from collections.abc import Container
from typing import Final, Self

import msgspec

from kafscale.groups.effects import NO_TICKET
from kafscale.groups.model import MemberRecord

NEWCOMER_SESSION_MS: Final = 300_000
"""How long a member that joins for the first time is waited for, as in Kafka."""

Protocols = tuple[tuple[str, bytes], ...]
"""Name and metadata, most preferred first."""


class Member(msgspec.Struct, kw_only=True):
    """A member, as it has described itself with its last Join."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    heard_ms: int
    assignment: bytes = b""
    is_newcomer: bool = False
    """Until it is told that it is in a generation."""
    has_synced: bool = False
    """Whether it has asked for its assignment in this generation."""
    join_ticket: int = NO_TICKET
    sync_ticket: int = NO_TICKET

    @classmethod
    def restored(cls, record: MemberRecord, now_ms: int) -> Self:
        """Its session begins anew, and it waits for nothing."""
        return cls(
            member_id=record.member_id,
            instance_id=record.instance_id,
            client_id=record.client_id,
            client_host=record.client_host,
            session_timeout_ms=record.session_timeout_ms,
            rebalance_timeout_ms=record.rebalance_timeout_ms,
            protocols=record.protocols,
            assignment=record.assignment,
            heard_ms=now_ms,
        )

    def record(self) -> MemberRecord:
        return MemberRecord(
            member_id=self.member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            heartbeat_ms=self.heard_ms,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            protocols=self.protocols,
            assignment=self.assignment,
        )

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def has_joined(self) -> bool:
        """Whether it is ready for the next generation."""
        return self.join_ticket != NO_TICKET

    @property
    def expires_ms(self) -> int | None:
        """When its session ends, unless it is heard of before; None while that cannot be."""
        if self.is_newcomer:
            return self.heard_ms + NEWCOMER_SESSION_MS
        if self.join_ticket != NO_TICKET or self.sync_ticket != NO_TICKET:
            return None
        return self.heard_ms + self.session_timeout_ms

    def metadata(self, protocol: str) -> bytes:
        """What it says for a protocol: nothing for one that it does not offer."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: Container[str]) -> str:
        """The one that it likes best."""
        return next(name for name, _ in self.protocols if name in candidates)
