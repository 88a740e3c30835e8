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


class Verdict(enum.Enum):
    """What a failed request is to be followed by."""

    UNDONE = "undone"
    """Nothing has happened; another member may do it."""
    IN_DOUBT = "in doubt"
    """It may have been done, or may still be; only what does no harm twice may be repeated."""
    UNKNOWN_TOKEN = "unknown token"  # noqa: S105 - a name, not a secret.
    """Nothing has happened; sign in again first."""
    REFUSED = "refused"
    """Nothing has happened, and it is no use to ask again: we may not, or do not trust them."""
    LEASE_ENDED = "lease ended"
    COMPACTED = "compacted"
    """The revision that was asked for is forgotten."""
    ANSWER_TOO_LARGE = "answer too large"


class EtcdError(StoreUnavailableError):
    """A request that failed at one member; to everybody else, a store that is unavailable."""

    def __init__(self, endpoint: str, reason: str, verdict: Verdict) -> None:
        super().__init__(f"etcd at {endpoint}: {reason}")
        self.verdict = verdict


# Parts of etcd's messages, which are fixed in its API, and of gRPC's own where it did not get as
# far as that. Codes say less: UNAVAILABLE is a lost answer as well as a member without a leader.
_MEANINGS: Final = (
    ("requested lease not found", Verdict.LEASE_ENDED),
    ("required revision has been compacted", Verdict.COMPACTED),
    ("Received message larger than max", Verdict.ANSWER_TOO_LARGE),
    ("invalid auth token", Verdict.UNKNOWN_TOKEN),
    ("revision of auth store is old", Verdict.UNKNOWN_TOKEN),
    ("invalid user ID or password", Verdict.REFUSED),
    ("user name is empty", Verdict.REFUSED),
    ("permission denied", Verdict.REFUSED),
    ("ALERT_BAD_CERTIFICATE", Verdict.REFUSED),
    ("ALERT_CERTIFICATE_REQUIRED", Verdict.REFUSED),
    ("Hostname Verification Check failed", Verdict.REFUSED),
    ("TSI_PROTOCOL_FAILURE", Verdict.REFUSED),
    ("failed to connect to all addresses", Verdict.UNDONE),
    ("etcdserver: no leader", Verdict.UNDONE),
    ("etcdserver: not capable", Verdict.UNDONE),
    ("etcdserver: too many requests", Verdict.UNDONE),
    ("etcdserver: rpc not supported for learner", Verdict.UNDONE),
    ("raft proposal dropped", Verdict.UNDONE),
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
"""The codes of an answer that is an answer, where its words are not known here."""

_WORDS: Final = {
    "user name is empty": "it wants a user and a password, and there are none in the settings",
    "ALERT_BAD_CERTIFICATE": "it does not accept our certificate, or wants one (etcd.tls.certFile)",
    "ALERT_CERTIFICATE_REQUIRED": "it wants a certificate of ours (etcd.tls.certFile)",
    "Hostname Verification Check failed": "its certificate is for another host",
    "TSI_PROTOCOL_FAILURE": "its certificate is not one that we trust (etcd.tls.caFile)",
}

_PREAMBLE: Final = re.compile(r"failed to connect to all addresses; last error: \w+: \S+: ")
"""What gRPC says before the reason why there is no connection."""


def failure(endpoint: str, code: grpc.StatusCode, details: str) -> EtcdError:
    """The error for an answer that is one, or for none at all."""
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return EtcdError(endpoint, "no answer in time", Verdict.IN_DOUBT)
    reason = _PREAMBLE.sub("", details) or code.name
    for part, verdict in _MEANINGS:
        if part in details:
            return EtcdError(endpoint, _WORDS.get(part, reason), verdict)
    return EtcdError(endpoint, reason, Verdict.REFUSED if code in _FINAL else Verdict.IN_DOUBT)
