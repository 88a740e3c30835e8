"""One member of a classic group: its identity, protocols, and pending requests.

Invariant: a member's session ends after the session timeout, but not while a request of it is
pending. Only a new member's session does even then: the client may have gone without ever learning
the id with which it could have left.
"""

from collections.abc import Container
from typing import Final, Self

import msgspec

from kafscale.groups.effects import NO_REPLY_TOKEN
from kafscale.groups.model import MemberRecord

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""How long a member's first join may wait, as in Kafka."""

Protocols = tuple[tuple[str, bytes], ...]
"""Name and metadata, most preferred first."""


class Member(msgspec.Struct, kw_only=True):
    """A member, as described by its last Join."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    heartbeat_ms: int
    assignment: bytes = b""
    is_new: bool = False
    """Until its first generation starts."""
    has_synced: bool = False
    """Whether it has sent SyncGroup in this generation."""
    join_reply_token: int = NO_REPLY_TOKEN
    sync_reply_token: int = NO_REPLY_TOKEN

    @classmethod
    def restored(cls, record: MemberRecord, now_ms: int) -> Self:
        """The recorded member; its session starts again, and no request is pending."""
        return cls(
            member_id=record.member_id,
            instance_id=record.instance_id,
            client_id=record.client_id,
            client_host=record.client_host,
            session_timeout_ms=record.session_timeout_ms,
            rebalance_timeout_ms=record.rebalance_timeout_ms,
            protocols=record.protocols,
            assignment=record.assignment,
            heartbeat_ms=now_ms,
        )

    def record(self) -> MemberRecord:
        return MemberRecord(
            member_id=self.member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            heartbeat_ms=self.heartbeat_ms,
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
        """Whether it has joined the next generation."""
        return self.join_reply_token != NO_REPLY_TOKEN

    @property
    def expires_ms(self) -> int | None:
        """When its session ends; None while a request is pending."""
        if self.is_new:
            return self.heartbeat_ms + NEW_MEMBER_JOIN_TIMEOUT_MS
        if self.join_reply_token != NO_REPLY_TOKEN or self.sync_reply_token != NO_REPLY_TOKEN:
            return None
        return self.heartbeat_ms + self.session_timeout_ms

    def metadata(self, protocol: str) -> bytes:
        """Its metadata for a protocol; empty for one that it does not offer."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: Container[str]) -> str:
        """Its most preferred protocol of the candidates."""
        return next(name for name, _ in self.protocols if name in candidates)
