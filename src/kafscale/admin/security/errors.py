"""What brokers answer to those who change who may do what: errors with the way out of them."""

from typing import Final

from kafscale.client.errors import check
from kafscale.protocol.error_codes import ErrorCode

_HINTS: Final = {
    ErrorCode.SECURITY_DISABLED: "set authorization.enabled (KAFSCALE_AUTHORIZATION_ENABLED=true)"
    " for the brokers, with somebody in authorization.superUsers who may make the first rules",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "it takes one of authorization.superUsers, or somebody"
    " whom a rule allows to alter the cluster; log in as one with --command-config or"
    " KAFSCALE_CLIENT_USERNAME",
}


def check_access(subject: str, code: int, message: str | None = None) -> None:
    """Raise unless an answer about `subject` is a success."""
    check(subject, code, message, hint=_HINTS.get(ErrorCode.of(code), ""))
