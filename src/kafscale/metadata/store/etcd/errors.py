"""Classifies etcd's errors by what they mean for the failed request.

Invariant: `NOT_APPLIED` means that etcd certainly has not applied the request and never will,
because the member rejected it before it proposed anything. If in doubt, it is `UNKNOWN_OUTCOME`.
"""

import enum
import re
from typing import Final

import grpc

from kafscale.errors import StoreUnavailableError


class ErrorKind(enum.Enum):
    """How to handle a failed request."""

    NOT_APPLIED = "not applied"
    """Nothing was changed; retry at another member."""
    UNKNOWN_OUTCOME = "unknown outcome"
    """The request may be applied now or later; retry only if it is idempotent."""
    INVALID_TOKEN = "invalid token"  # noqa: S105 - a name, not a secret.
    """Nothing was changed; authenticate again first."""
    REJECTED = "rejected"
    """Nothing was changed, and a retry fails until an operator acts: permissions or certificates
    are wrong, or the database is full."""
    LEASE_NOT_FOUND = "lease not found"
    COMPACTED = "compacted"
    """The requested revision was compacted."""
    RESPONSE_TOO_LARGE = "response too large"


class EtcdError(StoreUnavailableError):
    """A request that failed at one member."""

    def __init__(self, endpoint: str, reason: str, kind: ErrorKind) -> None:
        super().__init__(f"etcd at {endpoint}: {reason}")
        self.kind = kind


# Parts of etcd's messages, which its API defines, and of gRPC's own. Status codes are less precise:
# UNAVAILABLE is a lost response as well as a member without a leader.
_KNOWN_MESSAGES: Final = (
    ("requested lease not found", ErrorKind.LEASE_NOT_FOUND),
    ("required revision has been compacted", ErrorKind.COMPACTED),
    ("Received message larger than max", ErrorKind.RESPONSE_TOO_LARGE),
    ("invalid auth token", ErrorKind.INVALID_TOKEN),
    ("revision of auth store is old", ErrorKind.INVALID_TOKEN),
    ("invalid user ID or password", ErrorKind.REJECTED),
    ("user name is empty", ErrorKind.REJECTED),
    ("permission denied", ErrorKind.REJECTED),
    ("database space exceeded", ErrorKind.REJECTED),
    ("ALERT_BAD_CERTIFICATE", ErrorKind.REJECTED),
    ("ALERT_CERTIFICATE_REQUIRED", ErrorKind.REJECTED),
    ("Hostname Verification Check failed", ErrorKind.REJECTED),
    ("TSI_PROTOCOL_FAILURE", ErrorKind.REJECTED),
    ("failed to connect to all addresses", ErrorKind.NOT_APPLIED),
    ("etcdserver: no leader", ErrorKind.NOT_APPLIED),
    ("etcdserver: not capable", ErrorKind.NOT_APPLIED),
    ("etcdserver: too many requests", ErrorKind.NOT_APPLIED),
    ("etcdserver: rpc not supported for learner", ErrorKind.NOT_APPLIED),
    ("raft proposal dropped", ErrorKind.NOT_APPLIED),
)

_FINAL: Final = frozenset(
    {
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
"""Status codes of definite responses whose message is not known here."""

_EXPLANATIONS: Final = {
    "invalid user ID or password": "invalid user ID or password; check etcd.username and"
    " etcd.password",
    "permission denied": "permission denied; let the user of etcd.username read and write the keys"
    " of /kafscale/",
    "user name is empty": "it requires a user and a password; set etcd.username and etcd.password",
    "database space exceeded": "database space exceeded: it accepts no writes; compact and"
    " defragment it, then disarm its alarm NOSPACE (docs/operations/runbook.md)",
    "ALERT_BAD_CERTIFICATE": "it rejects the client certificate or needs one (etcd.tls.certFile)",
    "ALERT_CERTIFICATE_REQUIRED": "it requires a client certificate (etcd.tls.certFile)",
    "Hostname Verification Check failed": "its certificate is for another host name",
    "Handshake read failed": "the TLS handshake failed; if it does not use TLS, set"
    " etcd.tls.enabled to false",
    "Socket closed": "it closed the connection; if it expects TLS, set etcd.tls.enabled to true",
    "Failed parsing HTTP/2": "it is not etcd; set etcd.endpoints to the addresses for clients",
    "http2 header with status": "it is not etcd; set etcd.endpoints to the addresses for clients",
    "Connection refused": "Connection refused; check etcd.endpoints, and that etcd runs",
    "errors resolving": "its name cannot be resolved; check etcd.endpoints",
    "TSI_PROTOCOL_FAILURE": "its certificate is not trusted (etcd.tls.caFile)",
}

_PREAMBLE: Final = re.compile(r"failed to connect to all addresses; last error: \w+: \S+: ")
"""gRPC's prefix before the reason of a failed connection."""


def to_etcd_error(endpoint: str, code: grpc.StatusCode, details: str) -> EtcdError:
    """Convert a gRPC error."""
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return EtcdError(endpoint, "timed out", ErrorKind.UNKNOWN_OUTCOME)
    explained = (words for part, words in _EXPLANATIONS.items() if part in details)
    reason = next(explained, _PREAMBLE.sub("", details) or code.name)
    for part, kind in _KNOWN_MESSAGES:
        if part in details:
            return EtcdError(endpoint, reason, kind)
    return EtcdError(
        endpoint, reason, ErrorKind.REJECTED if code in _FINAL else ErrorKind.UNKNOWN_OUTCOME
    )
