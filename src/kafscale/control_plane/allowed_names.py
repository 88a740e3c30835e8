"""`Admission`: who may use an encrypted control plane, by the names in their certificates.

The laws: who is not named is refused, whatever they ask for; where nobody is named, everybody may
whose certificate is from the right authority, which is not this module's to check. Every refusal
and everything that changes the cluster is told to the audit log: who, from where and what.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafscale.errors import ClusterAuthorizationError
from kafscale.observability.logging import get_logger

if TYPE_CHECKING:
    import grpc

audit = get_logger("kafscale.audit")

_LOOKING: Final = frozenset({"GetStatus", "StreamMetrics", "WatchAssignments"})
"""Methods that change nothing."""


class Admission:
    """Lets those in who are named."""

    def __init__(self, allowed_names: Iterable[str] = ()) -> None:
        """Names as they are in certificates: the common name, or one of DNS."""
        self._allowed = frozenset(allowed_names)

    def admit(self, method: str, context: "grpc.aio.ServicerContext[Any, Any]") -> None:
        """Take note of a request; raises `ClusterAuthorizationError` where it is refused."""
        shown = context.auth_context()
        facts = {"principal": _subject(shown), "client": context.peer(), "api": f"control.{method}"}
        if self._allowed and self._allowed.isdisjoint(names(shown)):
            audit.warning("access denied", **facts)
            raise ClusterAuthorizationError(
                f"{facts['principal']} may not use the control plane (control.allowedNames)"
            )
        if method not in _LOOKING:
            audit.info("changed", **facts)


def names(shown: Mapping[str, Iterable[bytes]]) -> set[str]:
    """The names that somebody goes by, from what gRPC tells of a certificate.

    >>> sorted(names({"x509_common_name": [b"alice"], "peer_dns": [b"a.example.com"]}))
    ['a.example.com', 'alice']
    """
    found = (*shown.get("x509_common_name", ()), *shown.get("peer_dns", ()))
    return {name.decode(errors="replace") for name in found}


def _subject(shown: Mapping[str, Iterable[bytes]]) -> str:
    return b"".join(shown.get("x509_subject", ())).decode(errors="replace")
