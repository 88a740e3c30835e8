"""`AllowedSubjects`: who may use a control plane with TLS, by the names in client certificates.

Invariants: a client that is not listed is rejected; an empty list allows every client with a
certificate of the right CA, which TLS checks. Every rejection, and every request that changes the
cluster, is written to the audit log.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafscale.errors import ClusterAuthorizationError
from kafscale.observability.logging import get_logger

if TYPE_CHECKING:
    import grpc

audit = get_logger("kafscale.audit")

READ_ONLY_METHODS: Final = frozenset({"GetStatus", "StreamMetrics", "WatchAssignments"})
"""Methods that change nothing."""


class AllowedSubjects:
    """Authorizes clients by certificate name."""

    def __init__(self, allowed_subjects: Iterable[str] = ()) -> None:
        """Names as in certificates: the common name, or a DNS name."""
        self._allowed = frozenset(allowed_subjects)

    def authorize(self, method: str, context: "grpc.aio.ServicerContext[Any, Any]") -> None:
        """Log a request; raises `ClusterAuthorizationError` if the client is not allowed."""
        auth_context = context.auth_context()
        facts = {
            "principal": _subject(auth_context),
            "client": context.peer(),
            "api": f"control.{method}",
        }
        if self._allowed and self._allowed.isdisjoint(names(auth_context)):
            audit.warning("access denied", **facts)
            raise ClusterAuthorizationError(
                f"{facts['principal']} may not use the control plane (control.allowedSubjects)"
            )
        if method not in READ_ONLY_METHODS:
            audit.info("changed", **facts)


def names(auth_context: Mapping[str, Iterable[bytes]]) -> set[str]:
    """The names of a client, from the gRPC auth context.

    >>> sorted(names({"x509_common_name": [b"alice"], "peer_dns": [b"a.example.com"]}))
    ['a.example.com', 'alice']
    """
    encoded = (*auth_context.get("x509_common_name", ()), *auth_context.get("peer_dns", ()))
    return {name.decode(errors="replace") for name in encoded}


def _subject(auth_context: Mapping[str, Iterable[bytes]]) -> str:
    return b"".join(auth_context.get("x509_subject", ())).decode(errors="replace")
