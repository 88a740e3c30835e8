"""`EtcdStore`: the metadata store on etcd v3, over gRPC.

etcd provides the invariants of `MetadataStore`, with two adaptations: a put under an ended lease
fails the commit instead of raising an error, and a range is read in pages of one revision.

A lease lasts whole seconds, and at least one and a half election timeouts of etcd. When etcd elects
a new leader, all leases start their TTL again. So a lease may last longer than requested. But a
leader that has lost its quorum may still renew one until it notices (an election timeout, one
second by default), while the others already count down: code that relies on a lease must stop that
much earlier.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import closing
from typing import Final

from kafscale.config.sections.etcd import Etcd
from kafscale.errors import OperatingError
from kafscale.metadata._generated import rpc_pb2 as rpc
from kafscale.metadata.store.base import (
    Committed,
    Compare,
    Entry,
    Event,
    Operation,
    Snapshot,
    check_commit,
)
from kafscale.metadata.store.etcd import protobuf
from kafscale.metadata.store.etcd.client import open_client
from kafscale.metadata.store.etcd.errors import ErrorKind, EtcdError
from kafscale.metadata.store.etcd.member import Member, Metadata
from kafscale.metadata.store.etcd.protobuf import (
    LEASE_GRANT,
    LEASE_KEEP_ALIVE,
    LEASE_REVOKE,
    RANGE,
    TXN,
)
from kafscale.metadata.store.etcd.watch import watch

PAGE_ENTRIES: Final = 1000
"""How many entries of a range one request reads; fewer if they are too large."""

_REVISION_PROBE: Final = rpc.RangeRequest(key=b"/", keys_only=True)
"""A cheap read that returns the current revision."""


class EtcdStore:
    """A `MetadataStore` on an etcd cluster."""

    def __init__(self, settings: Etcd) -> None:
        """Create channels without connecting; call this in a running event loop."""
        self._client = open_client(settings.endpoints, settings)
        self._dial_s = settings.dial_timeout_ms / 1000

    @property
    def endpoint(self) -> str:
        """The member that is used at the moment."""
        return self._client.members.preferred.endpoint

    async def check(self) -> None:
        """Check that etcd responds; raises `OperatingError` if a retry will not help."""
        try:
            await self._client.check(self._dial_s)
        except EtcdError as error:
            if error.kind is ErrorKind.REJECTED:
                raise OperatingError(str(error)) from None
            raise

    async def get(self, key: str) -> Entry | None:
        response = await self._client.call_idempotent(RANGE, rpc.RangeRequest(key=key.encode()))
        return protobuf.entry(response.kvs[0]) if response.kvs else None

    async def range(self, prefix: str) -> Snapshot:
        while True:
            try:
                return await self._range(prefix)
            except EtcdError as error:
                # The revision of the first page was compacted before the last page was read.
                if error.kind is not ErrorKind.COMPACTED:
                    raise

    async def commit(
        self, compares: Sequence[Compare], operations: Sequence[Operation]
    ) -> Committed:
        check_commit(compares, operations)
        request = protobuf.transaction(compares, operations)
        try:
            response = await self._client.call_once(TXN, request)
        except EtcdError as error:
            if error.kind is not ErrorKind.LEASE_NOT_FOUND:
                raise
            return Committed(succeeded=False, revision=await self._revision())
        return Committed(response.succeeded, response.header.revision)

    def watch(self, prefix: str, after_revision: int) -> AsyncGenerator[list[Event], None]:
        return watch(self._client, prefix, after_revision)

    async def grant(self, ttl_ms: int) -> int:
        assert ttl_ms > 0, ttl_ms
        request = rpc.LeaseGrantRequest(TTL=-(-ttl_ms // 1000))
        return (await self._client.call_idempotent(LEASE_GRANT, request)).ID

    async def keep_alive(self, lease: int) -> bool:
        async def renew(member: Member, metadata: Metadata, seconds: float) -> int:
            with closing(member.stream(LEASE_KEEP_ALIVE, metadata, seconds)) as stream:
                await stream.send(rpc.LeaseKeepAliveRequest(ID=lease))
                return (await stream.receive()).TTL

        return await self._client.attempt(renew, idempotent=True) > 0

    async def revoke(self, lease: int) -> None:
        try:
            await self._client.call_idempotent(LEASE_REVOKE, rpc.LeaseRevokeRequest(ID=lease))
        except EtcdError as error:
            if error.kind is not ErrorKind.LEASE_NOT_FOUND:
                raise

    async def close(self) -> None:
        await self._client.close()

    async def _range(self, prefix: str) -> Snapshot:
        entries: list[Entry] = []
        first, end = protobuf.interval(prefix)
        limit, revision = PAGE_ENTRIES, 0
        while True:
            request = rpc.RangeRequest(key=first, range_end=end, limit=limit, revision=revision)
            try:
                page = await self._client.call_idempotent(RANGE, request)
            except EtcdError as error:
                if error.kind is not ErrorKind.RESPONSE_TOO_LARGE or limit == 1:
                    raise
                limit = max(1, limit // 10)
                continue
            revision = revision or page.header.revision
            entries += map(protobuf.entry, page.kvs)
            if not page.more:
                return Snapshot(tuple(entries), revision)
            first = page.kvs[-1].key + b"\0"

    async def _revision(self) -> int:
        return (await self._client.call_idempotent(RANGE, _REVISION_PROBE)).header.revision
