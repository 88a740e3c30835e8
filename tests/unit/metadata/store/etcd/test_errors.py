import grpc
import pytest

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.store.etcd.errors import ErrorKind, to_etcd_error

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
UNKNOWN = grpc.StatusCode.UNKNOWN
NO_CONNECTION = "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: "


@pytest.mark.parametrize(
    ("code", "details"),
    [
        (UNAVAILABLE, "etcdserver: no leader"),
        (UNAVAILABLE, NO_CONNECTION + "Failed to connect to remote host: Connection refused"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "etcdserver: too many requests"),
        (UNKNOWN, "raft proposal dropped"),
    ],
)
def test_rejected_before_proposal_is_not_applied(code, details):
    assert to_etcd_error("a", code, details).kind is ErrorKind.NOT_APPLIED


@pytest.mark.parametrize(
    ("code", "details"),
    [
        (UNAVAILABLE, "etcdserver: request timed out"),
        (UNAVAILABLE, "etcdserver: request timed out, possibly due to previous leader failure"),
        (UNAVAILABLE, "etcdserver: server stopped"),
        (UNAVAILABLE, "Socket closed"),
        (UNAVAILABLE, "recvmsg:Connection reset by peer"),
        (UNAVAILABLE, ""),
        (UNKNOWN, "context deadline exceeded"),
        (grpc.StatusCode.CANCELLED, "context canceled"),
        (grpc.StatusCode.INTERNAL, "stream terminated"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded"),
        # Whatever the message: after the deadline the outcome is unknown.
        (grpc.StatusCode.DEADLINE_EXCEEDED, "etcdserver: no leader"),
    ],
)
def test_ambiguous_error_is_an_unknown_outcome(code, details):
    assert to_etcd_error("a", code, details).kind is ErrorKind.UNKNOWN_OUTCOME


@pytest.mark.parametrize(
    ("code", "details", "verdict"),
    [
        ("NOT_FOUND", "etcdserver: requested lease not found", ErrorKind.LEASE_NOT_FOUND),
        (
            "OUT_OF_RANGE",
            "etcdserver: mvcc: required revision has been compacted",
            ErrorKind.COMPACTED,
        ),
        (
            "RESOURCE_EXHAUSTED",
            "CLIENT: Received message larger than max (9 vs. 4)",
            ErrorKind.RESPONSE_TOO_LARGE,
        ),
        ("UNAUTHENTICATED", "etcdserver: invalid auth token", ErrorKind.INVALID_TOKEN),
        ("INVALID_ARGUMENT", "etcdserver: user name is empty", ErrorKind.REJECTED),
        ("PERMISSION_DENIED", "etcdserver: permission denied", ErrorKind.REJECTED),
        ("RESOURCE_EXHAUSTED", "etcdserver: mvcc: database space exceeded", ErrorKind.REJECTED),
        ("UNIMPLEMENTED", "", ErrorKind.REJECTED),
        (
            "UNAVAILABLE",
            NO_CONNECTION + "Tls handshake failed (TSI_PROTOCOL_FAILURE): it says",
            ErrorKind.REJECTED,
        ),
    ],
)
def test_known_messages_are_classified(code, details, verdict):
    assert to_etcd_error("a", grpc.StatusCode[code], details).kind is verdict


def test_error_has_member_and_reason_without_grpc_preamble():
    error = to_etcd_error("etcd-0:2379", UNAVAILABLE, NO_CONNECTION + "No route to host")
    assert str(error) == "etcd at etcd-0:2379: No route to host"
    assert str(to_etcd_error("a", UNAVAILABLE, "")) == "etcd at a: UNAVAILABLE"
    assert isinstance(error, StoreUnavailableError)
