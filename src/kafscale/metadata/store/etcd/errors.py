"""What etcd's errors mean for the request that met them.

The law: `UNDONE` is said only where etcd surely has not done, and will not do, what was asked: the
member refused before it proposed anything. Every doubt is `IN_DOUBT`. Who is asked next is left to
`client`.
"""

import enum
import re
from typing import Final

import grpc

from kafscale.errors import StoreUnavailableError


class ErrorKind(enum.Enum):
    """What a failed request is to be followed by."""

    NOT_APPLIED = "not applied"
    """Nothing has happened; another member may do it."""
    UNKNOWN_OUTCOME = "unknown outcome"
    """It may have been done, or may still be; only what does no harm twice may be repeated."""
    INVALID_TOKEN = "invalid token"  # noqa: S105 - a name, not a secret.
    """Nothing has happened; sign in again first."""
    REJECTED = "rejected"
    """Nothing has happened, and it is no use to ask again: we may not, or do not trust them."""
    LEASE_NOT_FOUND = "lease not found"
    COMPACTED = "compacted"
    """The revision that was asked for is forgotten."""
    RESPONSE_TOO_LARGE = "response too large"


class EtcdError(StoreUnavailableError):
    """A request that failed at one member; to everybody else, a store that is unavailable."""

    def __init__(self, endpoint: str, reason: str, kind: ErrorKind) -> None:
        super().__init__(f"etcd at {endpoint}: {reason}")
        self.kind = kind


# Parts of etcd's messages, which are fixed in its API, and of gRPC's own where it did not get as
# far as that. Codes say less: UNAVAILABLE is a lost response as well as a member without a leader.
_KNOWN_MESSAGES: Final = (
    ("requested lease not found", ErrorKind.LEASE_NOT_FOUND),
    ("required revision has been compacted", ErrorKind.COMPACTED),
    ("Received message larger than max", ErrorKind.RESPONSE_TOO_LARGE),
    ("invalid auth token", ErrorKind.INVALID_TOKEN),
    ("revision of auth store is old", ErrorKind.INVALID_TOKEN),
    ("invalid user ID or password", ErrorKind.REJECTED),
    ("user name is empty", ErrorKind.REJECTED),
    ("permission denied", ErrorKind.REJECTED),
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
"""The codes of an response that is an response, where its words are not known here."""

_EXPLANATIONS: Final = {
    "user name is empty": "it wants a user and a password, and there are none in the settings",
    "ALERT_BAD_CERTIFICATE": "it does not accept our certificate, or wants one (etcd.tls.certFile)",
    "ALERT_CERTIFICATE_REQUIRED": "it wants a certificate of ours (etcd.tls.certFile)",
    "Hostname Verification Check failed": "its certificate is for another host",
    "TSI_PROTOCOL_FAILURE": "its certificate is not one that we trust (etcd.tls.caFile)",
}

_PREAMBLE: Final = re.compile(r"failed to connect to all addresses; last error: \w+: \S+: ")
"""What gRPC says before the reason why there is no connection."""


def to_etcd_error(endpoint: str, code: grpc.StatusCode, details: str) -> EtcdError:
    """The error for an response that is one, or for none at all."""
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return EtcdError(endpoint, "no response in time", ErrorKind.UNKNOWN_OUTCOME)
    reason = _PREAMBLE.sub("", details) or code.name
    for part, kind in _KNOWN_MESSAGES:
        if part in details:
            return EtcdError(endpoint, _EXPLANATIONS.get(part, reason), kind)
    return EtcdError(
        endpoint, reason, ErrorKind.REJECTED if code in _FINAL else ErrorKind.UNKNOWN_OUTCOME
    )
