"""Members of classic groups that send exactly the requests a test asks for, one connection each.

with scripted_members(port, group, "connect", [b"metadata", b"of two"]) as members:
    responses = join(members)
    assignments = sync(members, responses, {member.member_id: b"" for member in members})
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from kafscale.protocol.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupResponse,
    OfferedProtocol,
)
from kafscale.protocol.messages.sync_group import (
    SYNC_GROUP,
    MemberAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)
from services.wire import Wire

MEMBER_ID_REQUIRED = 79
TIMEOUT_MS = 30_000
JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION = 9, 5, 4
"""Request versions."""


class ScriptedMember:
    """One member that has its member id and has not joined yet."""

    def __init__(self, wire: Wire, group: str, protocol_type: str, metadata: bytes) -> None:
        self.wire = wire
        self.metadata = metadata
        self.join_request = JoinGroupRequest(
            group,
            session_timeout_ms=TIMEOUT_MS,
            rebalance_timeout_ms=TIMEOUT_MS,
            protocol_type=protocol_type,
            protocols=[
                OfferedProtocol(f"only {len(metadata)}", b"offered by one member"),
                OfferedProtocol("shared", metadata),
            ],
        )
        response = wire.call(JOIN_GROUP, JOIN_VERSION, self.join_request)
        assert response.error_code == MEMBER_ID_REQUIRED
        self.join_request.member_id = response.member_id

    @property
    def group(self) -> str:
        return self.join_request.group_id

    @property
    def member_id(self) -> str:
        return self.join_request.member_id

    def heartbeat(self, generation: int, wire: Wire | None = None) -> int:
        """Send a heartbeat and return the error code."""
        request = HeartbeatRequest(self.group, generation, self.member_id)
        response = (wire or self.wire).call(HEARTBEAT, HEARTBEAT_VERSION, request)
        return int(response.error_code)

    def sync_request(self, joined: JoinGroupResponse) -> SyncGroupRequest:
        return SyncGroupRequest(
            self.group,
            joined.generation_id,
            self.member_id,
            protocol_type=joined.protocol_type,
            protocol_name=joined.protocol_name,
        )


@contextmanager
def scripted_members(
    port: int, group: str, protocol_type: str, metadata: Sequence[bytes]
) -> Iterator[list[ScriptedMember]]:
    with ExitStack() as stack:
        yield [
            ScriptedMember(
                stack.enter_context(Wire(port, timeout_s=30)), group, protocol_type, each
            )
            for each in metadata
        ]


def join(members: Sequence[ScriptedMember]) -> list[JoinGroupResponse]:
    """Let all members join at the same time."""
    for member in members:
        member.wire.send(JOIN_GROUP, JOIN_VERSION, member.join_request)
    return [member.wire.receive(JOIN_GROUP, JOIN_VERSION)[1] for member in members]


def sync(
    members: Sequence[ScriptedMember],
    responses: Sequence[JoinGroupResponse],
    assignments: Mapping[str, bytes],
) -> list[SyncGroupResponse]:
    """Let all members sync; the leader sends the assignments of all."""
    for member, joined in zip(members, responses, strict=True):
        request = member.sync_request(joined)
        if member.member_id == joined.leader:
            request.assignments = [MemberAssignment(*each) for each in assignments.items()]
        member.wire.send(SYNC_GROUP, SYNC_VERSION, request)
    return [member.wire.receive(SYNC_GROUP, SYNC_VERSION)[1] for member in members]
