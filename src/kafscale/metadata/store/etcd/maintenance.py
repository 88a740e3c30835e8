"""`Maintenance`: status, snapshots, defragmentation and membership of etcd, through one member.

    async with Maintenance("etcd-0:2379", settings) as etcd:
        if (await etcd.status()).leader_id:
            await etcd.defragment()

Requests go to this member only, because most concern its own database and health. Cluster-wide
requests (members, alarms, compaction) go through it and need a quorum. `status` and `snapshot` work
without a quorum too. Failures raise `EtcdError`.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final, Protocol, Self

import msgspec

from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KafscaleError
from kafscale.metadata._generated import rpc_pb2 as rpc
from kafscale.metadata.store.etcd.client import open_client
from kafscale.metadata.store.etcd.errors import EtcdError
from kafscale.metadata.store.etcd.member import Member, Metadata
from kafscale.metadata.store.etcd.protobuf import (
    ALARM,
    COMPACT,
    DEFRAGMENT,
    MEMBER_ADD,
    MEMBER_LIST,
    MEMBER_PROMOTE,
    MEMBER_REMOVE,
    SNAPSHOT,
    STATUS,
)

NO_SPACE: Final = "NOSPACE"
"""The alarm of a member whose database has reached its quota; writes fail."""
CORRUPT: Final = "CORRUPT"
"""The alarm of a member whose database differs from the others'."""

_REWRITE_S_MAX: Final = 300.0
"""The timeout of compaction and defragmentation: a slow disk rewrites a few GiB in this time."""

_ALREADY_COMPACTED: Final = "required revision has been compacted"
_MEMBER_NOT_FOUND: Final = "member not found"


class MemberStatus(msgspec.Struct, frozen=True):
    """The status that a member reports."""

    version: str
    database_bytes: int
    """The size of the database file."""
    database_used_bytes: int
    """The part in use; defragmentation frees the rest."""
    leader_id: int
    """0 if the member knows no leader."""
    member_id: int
    cluster_id: int
    revision: int
    """The member's own revision; others may be ahead."""
    errors: tuple[str, ...] = ()
    """What the member complains about; every alarm of the cluster is one of them."""
    is_learner: bool = False
    quota_bytes: int = 0
    """The limit of the size of the database file; 0 if it is not reported, before 3.6."""

    @property
    def has_no_space(self) -> bool:
        """True while the alarm of any member makes the cluster reject writes."""
        return any(NO_SPACE in error for error in self.errors)

    @property
    def is_leader(self) -> bool:
        return self.leader_id == self.member_id

    @property
    def has_quorum_view(self) -> bool:
        """True if the member can answer linearizable reads: it has a leader and is no learner."""
        return bool(self.leader_id) and not self.is_learner


class EtcdMember(msgspec.Struct, frozen=True):
    """An entry of the cluster's member list."""

    id: int
    name: str
    """Empty for a member that was added and never started."""
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...] = ()
    is_learner: bool = False


class Alarm(msgspec.Struct, frozen=True):
    """An active alarm; it stays until it is disarmed."""

    member_id: int
    kind: str


class SupportsStatus(Protocol):
    """An object that returns the status of a member."""

    async def status(self) -> MemberStatus: ...


async def statuses(
    members: Mapping[str, SupportsStatus],
) -> dict[str, MemberStatus | KafscaleError]:
    """The status of each member, requested concurrently, or the error of the request."""
    responses = await asyncio.gather(
        *(member.status() for member in members.values()), return_exceptions=True
    )
    statuses_by_endpoint: dict[str, MemberStatus | KafscaleError] = {}
    for endpoint, response in zip(members, responses, strict=True):
        if not isinstance(response, MemberStatus | KafscaleError):
            raise response
        statuses_by_endpoint[endpoint] = response
    return statuses_by_endpoint


class Maintenance:
    """A connection to a member; create it in a running event loop."""

    def __init__(self, endpoint: str, settings: Etcd) -> None:
        """Create the channel without connecting. `settings.endpoints` is ignored."""
        self._client = open_client([endpoint], settings)
        self.endpoint: Final = self._client.members.preferred.endpoint

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._client.close()

    async def status(self) -> MemberStatus:
        """The status of the member, even if it knows no leader."""

        async def request(member: Member, metadata: Metadata, seconds: float) -> rpc.StatusResponse:
            return await member.call(STATUS, rpc.StatusRequest(), _leaderless(metadata), seconds)

        response = await self._client.attempt(request, idempotent=True)
        return MemberStatus(
            version=response.version,
            database_bytes=response.dbSize,
            database_used_bytes=response.dbSizeInUse,
            leader_id=response.leader,
            member_id=response.header.member_id,
            cluster_id=response.header.cluster_id,
            revision=response.header.revision,
            errors=tuple(response.errors),
            is_learner=response.isLearner,
            quota_bytes=max(response.dbSizeQuota, 0),
        )

    async def snapshot(self) -> AsyncGenerator[bytes, None]:
        """Stream the database; the last 32 bytes are the SHA-256 of all before them."""

        async def begin(
            member: Member, metadata: Metadata, _seconds: float
        ) -> tuple[bytes, AsyncGenerator[rpc.SnapshotResponse, None]]:
            responses = member.download(SNAPSHOT, rpc.SnapshotRequest(), _leaderless(metadata))
            return (await anext(responses)).blob, responses

        # The request can be retried until the first chunk arrives.
        first, responses = await self._client.attempt(begin, idempotent=True)
        async with contextlib.aclosing(responses):
            yield first
            async for response in responses:
                yield response.blob

    async def defragment(self) -> None:
        """Rewrite the database to release free space.

        The member blocks requests meanwhile, so defragment one member at a time.
        """

        async def rewrite(member: Member, metadata: Metadata, _seconds: float) -> None:
            await member.call(DEFRAGMENT, rpc.DefragmentRequest(), metadata, _REWRITE_S_MAX)

        await self._client.attempt(rewrite, idempotent=False)

    async def compact(self, revision: int) -> None:
        """Compact the history before a revision on all members; no error if already done."""

        async def send(member: Member, metadata: Metadata, _seconds: float) -> None:
            request = rpc.CompactionRequest(revision=revision, physical=True)
            await member.call(COMPACT, request, metadata, _REWRITE_S_MAX)

        try:
            await self._client.attempt(send, idempotent=False)
        except EtcdError as error:
            if _ALREADY_COMPACTED not in str(error):
                raise

    async def alarms(self) -> list[Alarm]:
        """The alarms of all members."""
        response = await self._client.call_idempotent(ALARM, rpc.AlarmRequest())
        return [Alarm(each.memberID, rpc.AlarmType.Name(each.alarm)) for each in response.alarms]

    async def disarm(self, alarm: Alarm) -> None:
        """Disarm an alarm. If its cause persists, the member raises it again."""
        request = rpc.AlarmRequest(
            action=rpc.AlarmRequest.DEACTIVATE, memberID=alarm.member_id, alarm=alarm.kind
        )
        await self._client.call_idempotent(ALARM, request)

    async def members(self) -> list[EtcdMember]:
        """The member list, by a linearizable read."""
        response = await self._client.call_idempotent(
            MEMBER_LIST, rpc.MemberListRequest(linearizable=True)
        )
        return [_member(each) for each in response.members]

    async def add_member(self, peer_urls: Sequence[str], *, learner: bool = False) -> EtcdMember:
        """Add a member; it votes from now on unless it is a learner."""
        request = rpc.MemberAddRequest(peerURLs=peer_urls, isLearner=learner)
        return _member((await self._client.call_once(MEMBER_ADD, request)).member)

    async def promote_member(self, member_id: int) -> None:
        """Promote a learner to a voter; rejected until it has caught up."""
        await self._client.call_once(MEMBER_PROMOTE, rpc.MemberPromoteRequest(ID=member_id))

    async def remove_member(self, member_id: int) -> None:
        """Remove a member; no error if it is not in the list."""
        try:
            await self._client.call_once(MEMBER_REMOVE, rpc.MemberRemoveRequest(ID=member_id))
        except EtcdError as error:
            if _MEMBER_NOT_FOUND not in str(error):
                raise


def _leaderless(metadata: Metadata) -> Metadata:
    """The metadata without `hasleader`, so that members without a leader respond too."""
    return tuple(pair for pair in metadata if pair[0] != "hasleader")


def _member(member: rpc.Member) -> EtcdMember:
    return EtcdMember(
        member.ID, member.name, tuple(member.peerURLs), tuple(member.clientURLs), member.isLearner
    )
