"""Members of classic groups that say exactly what a test wants, each on a connection of its own.

with workers(port, group, "connect", [b"metadata", b"of two"]) as crew:
    answers = join(crew)
    assignments = sync(crew, answers, {worker.member_id: b"" for worker in crew})
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
JOIN, SYNC, HEART = 9, 5, 4
"""The versions of the requests."""


class Worker:
    """One member, that has its id and has not joined yet."""

    def __init__(self, wire: Wire, group: str, protocol_type: str, metadata: bytes) -> None:
        self.wire = wire
        self.metadata = metadata
        self.join_request = JoinGroupRequest(
            group,
            session_timeout_ms=TIMEOUT_MS,
            rebalance_timeout_ms=TIMEOUT_MS,
            protocol_type=protocol_type,
            protocols=[
                OfferedProtocol(f"only {len(metadata)}", b"nobody else has it"),
                OfferedProtocol("shared", metadata),
            ],
        )
        answer = wire.call(JOIN_GROUP, JOIN, self.join_request)
        assert answer.error_code == MEMBER_ID_REQUIRED
        self.join_request.member_id = answer.member_id

    @property
    def group(self) -> str:
        return self.join_request.group_id

    @property
    def member_id(self) -> str:
        return self.join_request.member_id

    def heartbeat(self, generation: int, wire: Wire | None = None) -> int:
        """The error code with which it is answered."""
        request = HeartbeatRequest(self.group, generation, self.member_id)
        answer = (wire or self.wire).call(HEARTBEAT, HEART, request)
        return int(answer.error_code)

    def sync_request(self, joined: JoinGroupResponse) -> SyncGroupRequest:
        return SyncGroupRequest(
            self.group,
            joined.generation_id,
            self.member_id,
            protocol_type=joined.protocol_type,
            protocol_name=joined.protocol_name,
        )


@contextmanager
def workers(
    port: int, group: str, protocol_type: str, metadata: Sequence[bytes]
) -> Iterator[list[Worker]]:
    with ExitStack() as stack:
        yield [
            Worker(stack.enter_context(Wire(port, timeout_s=30)), group, protocol_type, each)
            for each in metadata
        ]


def join(crew: Sequence[Worker]) -> list[JoinGroupResponse]:
    """Everybody joins at the same time."""
    for worker in crew:
        worker.wire.send(JOIN_GROUP, JOIN, worker.join_request)
    return [worker.wire.receive(JOIN_GROUP, JOIN)[1] for worker in crew]


def sync(
    crew: Sequence[Worker], answers: Sequence[JoinGroupResponse], assignments: Mapping[str, bytes]
) -> list[SyncGroupResponse]:
    """Everybody asks for an assignment, and the leader hands in those of all."""
    for worker, joined in zip(crew, answers, strict=True):
        request = worker.sync_request(joined)
        if worker.member_id == joined.leader:
            request.assignments = [MemberAssignment(*each) for each in assignments.items()]
        worker.wire.send(SYNC_GROUP, SYNC, request)
    return [worker.wire.receive(SYNC_GROUP, SYNC)[1] for worker in crew]
