"""`Maintenance`: one member of etcd, as those see it who look after it.

    async with Maintenance("etcd-0:2379", settings) as etcd:
        if (await etcd.status()).leader_id:
            await etcd.defragment()

The laws: only this member is asked, because what is asked is about it: its database, its health,
its copy of everything. What concerns the whole cluster (its members, alarms and compaction) goes
through it, and is agreed on by most members before it counts. `status` and `snapshot` are answered
by a member that has lost the others as well. Whatever fails is an `EtcdError`, a store that is
unavailable, and says why.

When any of this is to be done is left to the operator, and to people.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final, Protocol, Self

import msgspec

from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KafscaleError
from kafscale.metadata._generated import rpc_pb2 as rpc
from kafscale.metadata.store.etcd.channel import address, channel_credentials, open_channel
from kafscale.metadata.store.etcd.client import Client
from kafscale.metadata.store.etcd.errors import EtcdError
from kafscale.metadata.store.etcd.member import Member, Metadata
from kafscale.metadata.store.etcd.members import Members
from kafscale.metadata.store.etcd.methods import (
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
from kafscale.metadata.store.etcd.session import Session

NO_SPACE: Final = "NOSPACE"
"""The alarm of a member whose database has reached its quota: nothing is written any more."""
CORRUPT: Final = "CORRUPT"
"""The alarm of a member whose database is not like those of the others."""

_REWRITE_S_MAX: Final = 300.0
"""How long the database may be worked on: a slow disk rewrites a few GiB in that time."""

_FORGOTTEN: Final = "required revision has been compacted"
_NO_SUCH_MEMBER: Final = "member not found"


class MemberStatus(msgspec.Struct, frozen=True):
    """How a member is, by its own account."""

    version: str
    database_bytes: int
    """The size of the file."""
    database_used_bytes: int
    """What of it is in use; the rest is given back by a defragmentation."""
    leader_id: int
    """0 where it knows none."""
    member_id: int
    cluster_id: int
    revision: int
    """That it has come to; others may be further."""
    errors: tuple[str, ...] = ()
    is_learner: bool = False

    @property
    def is_leader(self) -> bool:
        return self.leader_id == self.member_id

    @property
    def has_quorum_view(self) -> bool:
        """Whether it can be asked what most members agree on: learners are not told."""
        return bool(self.leader_id) and not self.is_learner


class EtcdMember(msgspec.Struct, frozen=True):
    """A member as the cluster has it in its list."""

    id: int
    name: str
    """Empty where it has been added, and has never started."""
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...] = ()
    is_learner: bool = False


class Alarm(msgspec.Struct, frozen=True):
    """Something that is wrong with a member until somebody says that it is not any more."""

    member_id: int
    kind: str


class HasStatus(Protocol):
    """Whoever says how a member is; `Maintenance` does."""

    async def status(self) -> MemberStatus: ...


async def statuses(members: Mapping[str, HasStatus]) -> dict[str, MemberStatus | KafscaleError]:
    """How members are, all asked at once, or why one does not say."""
    responses = await asyncio.gather(
        *(member.status() for member in members.values()), return_exceptions=True
    )
    told: dict[str, MemberStatus | KafscaleError] = {}
    for endpoint, response in zip(members, responses, strict=True):
        if not isinstance(response, MemberStatus | KafscaleError):
            raise response
        told[endpoint] = response
    return told


class Maintenance:
    """A connection to a member; to be made where an event loop runs."""

    def __init__(self, endpoint: str, settings: Etcd) -> None:
        """Connect to nothing yet. Of the settings, all count but the endpoints."""
        self.endpoint: Final = address(endpoint)
        credentials = channel_credentials(settings)
        channel = open_channel(self.endpoint, settings.dial_timeout_ms, credentials)
        self._members = Members([Member(self.endpoint, channel)])
        session = Session(settings.username, settings.password)
        self._client = Client(self._members, session, settings.request_timeout_ms)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._members.close()

    async def status(self) -> MemberStatus:
        """How the member is, even if it knows no leader."""

        async def ask(member: Member, metadata: Metadata, seconds: float) -> rpc.StatusResponse:
            return await member.call(STATUS, rpc.StatusRequest(), _leaderless(metadata), seconds)

        response = await self._client.attempt(ask, idempotent=True)
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
        )

    async def snapshot(self) -> AsyncGenerator[bytes, None]:
        """The whole database in pieces; the last 32 bytes are the SHA-256 of all before them."""

        async def begin(
            member: Member, metadata: Metadata, _seconds: float
        ) -> tuple[bytes, AsyncGenerator[rpc.SnapshotResponse, None]]:
            responses = member.download(SNAPSHOT, rpc.SnapshotRequest(), _leaderless(metadata))
            return (await anext(responses)).blob, responses

        # Until the first piece has come, nobody has seen anything, and it can begin again.
        first, responses = await self._client.attempt(begin, idempotent=True)
        async with contextlib.aclosing(responses):
            yield first
            async for response in responses:
                yield response.blob

    async def defragment(self) -> None:
        """Write the database anew, without what is free in it.

        The member responses nobody until that is done, so it is done to one member at a time.
        """

        async def rewrite(member: Member, metadata: Metadata, _seconds: float) -> None:
            await member.call(DEFRAGMENT, rpc.DefragmentRequest(), metadata, _REWRITE_S_MAX)

        await self._client.attempt(rewrite, idempotent=False)

    async def compact(self, revision: int) -> None:
        """Forget what happened before the revision, at all members; nothing, if it is forgotten."""

        async def forget(member: Member, metadata: Metadata, _seconds: float) -> None:
            request = rpc.CompactionRequest(revision=revision, physical=True)
            await member.call(COMPACT, request, metadata, _REWRITE_S_MAX)

        try:
            await self._client.attempt(forget, idempotent=False)
        except EtcdError as error:
            if _FORGOTTEN not in str(error):
                raise

    async def alarms(self) -> list[Alarm]:
        """The alarms of all members."""
        response = await self._client.call_idempotent(ALARM, rpc.AlarmRequest())
        return [Alarm(each.memberID, rpc.AlarmType.Name(each.alarm)) for each in response.alarms]

    async def disarm(self, alarm: Alarm) -> None:
        """Say that it is over. Where that is not so, the member raises it again."""
        request = rpc.AlarmRequest(
            action=rpc.AlarmRequest.DEACTIVATE, memberID=alarm.member_id, alarm=alarm.kind
        )
        await self._client.call_idempotent(ALARM, request)

    async def members(self) -> list[EtcdMember]:
        """All members, as most of them have agreed."""
        response = await self._client.call_idempotent(
            MEMBER_LIST, rpc.MemberListRequest(linearizable=True)
        )
        return [_member(each) for each in response.members]

    async def add_member(self, peer_urls: Sequence[str], *, learner: bool = False) -> EtcdMember:
        """Let somebody in, who counts from now on unless it is a learner."""
        request = rpc.MemberAddRequest(peerURLs=peer_urls, isLearner=learner)
        return _member((await self._client.call_once(MEMBER_ADD, request)).member)

    async def promote_member(self, member_id: int) -> None:
        """Let a learner count; it is refused while the learner has not caught up."""
        await self._client.call_once(MEMBER_PROMOTE, rpc.MemberPromoteRequest(ID=member_id))

    async def remove_member(self, member_id: int) -> None:
        """Shut a member out for good; nothing, if it is not in."""
        try:
            await self._client.call_once(MEMBER_REMOVE, rpc.MemberRemoveRequest(ID=member_id))
        except EtcdError as error:
            if _NO_SUCH_MEMBER not in str(error):
                raise


def _leaderless(metadata: Metadata) -> Metadata:
    """The same, but an response is wanted also of a member that knows no leader."""
    return tuple(pair for pair in metadata if pair[0] != "hasleader")


def _member(member: rpc.Member) -> EtcdMember:
    return EtcdMember(
        member.ID, member.name, tuple(member.peerURLs), tuple(member.clientURLs), member.isLearner
    )
