"""Errors of the control plane, and their gRPC statuses.

Invariant: a client gets a status and a message that says what to do, and nothing else about this
process. Unexpected errors become INTERNAL, and are logged here.

    KafscaleError
    ├── NotControllerError     only the controller can do it
    ├── NotServedError         this server does not serve the method; another one does
    ├── WrongBrokerError       the request is meant for another broker
    └── ControlError           the server rejected the request; `status` is its gRPC status
        └── UnreachableError   the server did not respond
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
"""Sent with every error, so that a rejection by a broker is not taken for a failed connection. A
client sends it with every request that is meant for one broker."""

_TRANSPORT_STATUSES: Final = frozenset(
    {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
)


class NotControllerError(KafscaleError):
    """Only the controller can do this."""


class NotServedError(KafscaleError):
    """A declared method that this server does not serve."""


class WrongBrokerError(KafscaleError):
    """The request is meant for another broker, whose address leads here."""


class ControlError(KafscaleError):
    """The server rejected the request."""

    def __init__(self, address: str, status: str, details: str) -> None:
        super().__init__(f"the broker at {address} responded: {details} ({status})")
        self.address = address
        self.status = status
        self.details = details


class UnreachableError(ControlError):
    """The server does not respond, or not in time."""

    def __init__(self, address: str, status: str, details: str) -> None:
        super().__init__(address, status, details)
        self.args = (f"no broker responds on the control plane at {address}: {details}",)

    @property
    def is_timeout(self) -> bool:
        """Whether there was no response in time, so that the connection itself may be dead."""
        return self.status == grpc.StatusCode.DEADLINE_EXCEEDED.name


# From specific to general: the first match counts.
_STATUSES: Final = (
    (UnknownTopicError, grpc.StatusCode.NOT_FOUND),
    (UnknownTopicIdError, grpc.StatusCode.NOT_FOUND),
    (NotOwnerError, grpc.StatusCode.FAILED_PRECONDITION),
    (NotControllerError, grpc.StatusCode.FAILED_PRECONDITION),
    (WrongBrokerError, grpc.StatusCode.FAILED_PRECONDITION),
    (NotServedError, grpc.StatusCode.UNIMPLEMENTED),
    (AuthorizationError, grpc.StatusCode.PERMISSION_DENIED),
    (OverloadedError, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (RefusedError, grpc.StatusCode.INVALID_ARGUMENT),
    (OperatingError, grpc.StatusCode.UNAVAILABLE),
    (TimeoutError, grpc.StatusCode.DEADLINE_EXCEEDED),
)

_TLS_HINTS: Final = {
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not issued by a trusted CA (caFile)",
    "Hostname Verification Check failed": "the certificate is for another host (verifyHostname)",
    "WRONG_VERSION_NUMBER": "the server does not use TLS (client.controlTls)",
    "Socket closed": "it closed the connection: with TLS, it requires a certificate"
    " (client.controlTls)",
}
"""What gRPC reports for TLS problems, and what it means; the settings are in parentheses."""


def status_of(error: Exception) -> grpc.StatusCode:
    """The gRPC status of an error.

    >>> status_of(UnknownTopicError("there is no topic 'orders'"))
    <StatusCode.NOT_FOUND: (5, 'not found')>
    """
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return status
    return grpc.StatusCode.INTERNAL


def control_error(address: str, error: grpc.aio.AioRpcError) -> ControlError:
    """Convert a gRPC error into a `ControlError`."""
    status = error.code()
    details = error.details() or "no reason given"
    is_response = any(key == BROKER_KEY for key, _ in error.trailing_metadata() or ())
    if is_response or status not in _TRANSPORT_STATUSES:
        return ControlError(address, status.name, details)
    for part, hint in _TLS_HINTS.items():
        if part in details:
            return UnreachableError(address, status.name, hint)
    # Transport errors are reported with all their causes; the last one counts.
    return UnreachableError(address, status.name, details.rpartition(": ")[2].rstrip("]"))
