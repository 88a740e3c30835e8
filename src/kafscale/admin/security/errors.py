"""Errors of ACL and user requests, with hints for what to do."""

from typing import Final

from kafscale.client.errors import check
from kafscale.protocol.error_codes import ErrorCode

_HINTS: Final = {
    ErrorCode.SECURITY_DISABLED: "set authorization.enabled (KAFSCALE_AUTHORIZATION_ENABLED=true)"
    " for the brokers, and name a user in authorization.superUsers who can add the first ACLs",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "only users in authorization.superUsers, or"
    " with an ACL for Alter on the cluster, can do this; log in as one with --command-config or"
    " KAFSCALE_CLIENT_USERNAME",
}


def check_access(subject: str, code: int, message: str | None = None) -> None:
    """Raise an error unless the response about `subject` is a success."""
    check(subject, code, message, hint=_HINTS.get(ErrorCode.of(code), ""))
