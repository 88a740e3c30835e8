"""The RPCs of etcd's API that Kafscale calls, with their message types."""

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from google.protobuf.message import Message

from kafscale.metadata._generated import rpc_pb2 as rpc

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
