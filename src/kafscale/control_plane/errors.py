"""Errors on the way over the control plane: which gRPC status tells which of ours.

The law: whoever asks gets a status and a sentence that says what to do; nothing else about this
process. What is a fault of ours is told as that, and logged here.

    KafscaleError
    ├── NotControllerError     only the controller can do it
    ├── NotServedError         who was asked never does it; somebody else does
    └── ControlError           the other side said no; `status` is the name of its gRPC status
        └── UnreachableError   ... or did not answer
"""

from typing import Final

import grpc

from kafscale.errors import (
    AuthorizationError,
    KafscaleError,
    NotOwnerError,
    OperatingError,
    OverloadedError,
    RefusedError,
    UnknownTopicError,
    UnknownTopicIdError,
)

BROKER_KEY: Final = "kafscale-broker-id"
"""Goes with every refusal, so that a broker that says no is never taken for one that is away."""

_ON_THE_WAY: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})


class NotControllerError(KafscaleError):
    """Something that only the controller can do."""


class NotServedError(KafscaleError):
    """Something that is declared, and not for the one who was asked."""


class ControlError(KafscaleError):
    """A refusal of the broker that was asked."""

    def __init__(self, address: str, status: str, details: str) -> None:
        super().__init__(f"the broker at {address} says: {details} ({status})")
        self.address = address
        self.status = status
        self.details = details


class UnreachableError(ControlError):
    """A broker that does not answer, or not in time."""

    def __init__(self, address: str, status: str, details: str) -> None:
        super().__init__(address, status, details)
        self.args = (f"no broker answers on the control plane at {address}: {details}",)


# From the special to the general: the first that fits counts.
_STATUSES: Final = (
    (UnknownTopicError, grpc.StatusCode.NOT_FOUND),
    (UnknownTopicIdError, grpc.StatusCode.NOT_FOUND),
    (NotOwnerError, grpc.StatusCode.FAILED_PRECONDITION),
    (NotControllerError, grpc.StatusCode.FAILED_PRECONDITION),
    (NotServedError, grpc.StatusCode.UNIMPLEMENTED),
    (AuthorizationError, grpc.StatusCode.PERMISSION_DENIED),
    (OverloadedError, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (RefusedError, grpc.StatusCode.INVALID_ARGUMENT),
    (OperatingError, grpc.StatusCode.UNAVAILABLE),
    (TimeoutError, grpc.StatusCode.DEADLINE_EXCEEDED),
)

_WORDS: Final = {
    "CERTIFICATE_VERIFY_FAILED": "its certificate is from somebody whom we do not know (caFile)",
    "Hostname Verification Check failed": "its certificate is for another name (checkHost)",
    "WRONG_VERSION_NUMBER": "it is not encrypted there (controlTls)",
    "Socket closed": "it hangs up; encrypted, it wants a certificate (controlTls, certFile)",
}
"""What gRPC says of TLS, and what it means; the settings that decide are in parentheses."""


def status_of(error: Exception) -> grpc.StatusCode:
    """The status that tells an error.

    >>> status_of(UnknownTopicError("there is no topic 'orders'"))
    <StatusCode.NOT_FOUND: (5, 'not found')>
    """
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return status
    return grpc.StatusCode.INTERNAL


def refusal(address: str, error: grpc.aio.AioRpcError) -> ControlError:
    """The error of ours for what a broker, or the way to it, has answered."""
    status = error.code()
    details = error.details() or "it gives no reason"
    is_answer = any(key == BROKER_KEY for key, _ in error.trailing_metadata() or ())
    if is_answer or status not in _ON_THE_WAY:
        return ControlError(address, status.name, details)
    for part, words in _WORDS.items():
        if part in details:
            return UnreachableError(address, status.name, words)
    # What went wrong on the way is told with all its causes, of which the last one counts.
    return UnreachableError(address, status.name, details.rpartition(": ")[2].rstrip("]"))
