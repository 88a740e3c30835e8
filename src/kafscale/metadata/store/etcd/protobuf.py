"""The RPCs of etcd's API that Kafscale calls, and the conversion of the store's types to messages.

Keys are text here and bytes in etcd, with the same order: UTF-8 preserves the order of code points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from google.protobuf.message import Message

from kafscale.metadata._generated import rpc_pb2 as rpc
from kafscale.metadata.store.base import (
    Compare,
    Delete,
    DeletePrefix,
    Entry,
    Event,
    EventKind,
    Operation,
    Put,
    prefix_end,
)

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


@dataclass(frozen=True)
class Method(Generic[Request, Response]):
    """An RPC by its path."""

    path: str
    request: type[Request]
    response: type[Response]

    def encode(self, request: Request) -> bytes:
        return request.SerializeToString()

    def decode(self, response: bytes) -> Response:
        return self.response.FromString(response)


RANGE: Final = Method("/etcdserverpb.KV/Range", rpc.RangeRequest, rpc.RangeResponse)
TXN: Final = Method("/etcdserverpb.KV/Txn", rpc.TxnRequest, rpc.TxnResponse)
COMPACT: Final = Method("/etcdserverpb.KV/Compact", rpc.CompactionRequest, rpc.CompactionResponse)
WATCH: Final = Method("/etcdserverpb.Watch/Watch", rpc.WatchRequest, rpc.WatchResponse)
LEASE_GRANT: Final = Method(
    "/etcdserverpb.Lease/LeaseGrant", rpc.LeaseGrantRequest, rpc.LeaseGrantResponse
)
LEASE_REVOKE: Final = Method(
    "/etcdserverpb.Lease/LeaseRevoke", rpc.LeaseRevokeRequest, rpc.LeaseRevokeResponse
)
LEASE_KEEP_ALIVE: Final = Method(
    "/etcdserverpb.Lease/LeaseKeepAlive", rpc.LeaseKeepAliveRequest, rpc.LeaseKeepAliveResponse
)
AUTHENTICATE: Final = Method(
    "/etcdserverpb.Auth/Authenticate", rpc.AuthenticateRequest, rpc.AuthenticateResponse
)
MEMBER_ADD: Final = Method(
    "/etcdserverpb.Cluster/MemberAdd", rpc.MemberAddRequest, rpc.MemberAddResponse
)
MEMBER_REMOVE: Final = Method(
    "/etcdserverpb.Cluster/MemberRemove", rpc.MemberRemoveRequest, rpc.MemberRemoveResponse
)
MEMBER_PROMOTE: Final = Method(
    "/etcdserverpb.Cluster/MemberPromote", rpc.MemberPromoteRequest, rpc.MemberPromoteResponse
)
MEMBER_LIST: Final = Method(
    "/etcdserverpb.Cluster/MemberList", rpc.MemberListRequest, rpc.MemberListResponse
)
STATUS: Final = Method("/etcdserverpb.Maintenance/Status", rpc.StatusRequest, rpc.StatusResponse)
SNAPSHOT: Final = Method(
    "/etcdserverpb.Maintenance/Snapshot", rpc.SnapshotRequest, rpc.SnapshotResponse
)
DEFRAGMENT: Final = Method(
    "/etcdserverpb.Maintenance/Defragment", rpc.DefragmentRequest, rpc.DefragmentResponse
)
ALARM: Final = Method("/etcdserverpb.Maintenance/Alarm", rpc.AlarmRequest, rpc.AlarmResponse)


def interval(prefix: str) -> tuple[bytes, bytes]:
    """The range of keys with a prefix: first key, and end (exclusive)."""
    return prefix.encode(), prefix_end(prefix).encode()


def entry(pair: rpc.KeyValue) -> Entry:
    return Entry(pair.key.decode(), pair.value, pair.create_revision, pair.mod_revision, pair.lease)


def event(change: rpc.Event) -> Event:
    pair = change.kv
    kind = EventKind.DELETE if change.type == rpc.Event.DELETE else EventKind.PUT
    return Event(
        kind, pair.key.decode(), pair.value, pair.mod_revision, pair.create_revision, pair.lease
    )


def transaction(compares: Sequence[Compare], operations: Sequence[Operation]) -> rpc.TxnRequest:
    request = rpc.TxnRequest(
        compare=[_compare(compare) for compare in compares],
        success=[_operation(operation) for operation in operations],
    )
    if not operations:
        # A member answers an empty transaction from its local state. With a read in it, the
        # transaction is linearizable.
        read = rpc.RequestOp(request_range=rpc.RangeRequest(key=b"/", keys_only=True))
        request.success.append(read)
        request.failure.append(read)
    return request


def _compare(compare: Compare) -> rpc.Compare:
    key = compare.key.encode()
    if compare.mod_revision is not None:
        return rpc.Compare(target=rpc.Compare.MOD, key=key, mod_revision=compare.mod_revision)
    if compare.create_revision is not None:
        return rpc.Compare(
            target=rpc.Compare.CREATE, key=key, create_revision=compare.create_revision
        )
    return rpc.Compare(target=rpc.Compare.VALUE, key=key, value=compare.value)


def _operation(operation: Operation) -> rpc.RequestOp:
    match operation:
        case Put(key, value, lease):
            put = rpc.PutRequest(key=key.encode(), value=value, lease=lease)
            return rpc.RequestOp(request_put=put)
        case Delete(key):
            return rpc.RequestOp(request_delete_range=rpc.DeleteRangeRequest(key=key.encode()))
        case DeletePrefix(prefix):
            first, end = interval(prefix)
            delete = rpc.DeleteRangeRequest(key=first, range_end=end)
            return rpc.RequestOp(request_delete_range=delete)
