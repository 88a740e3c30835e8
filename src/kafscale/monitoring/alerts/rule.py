"""What an alert is, before Prometheus sees it.

The law: an alert measures something that is always there, and says from where on it is bad, apart
from each other: so that a live test can see that what is measured exists, and that nothing is bad
while all is well. Whom it wakes is told what is wrong, what follows from it, and where to read on.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

RUNBOOK: Final = "docs/operations/runbook.md"
"""Where alerts lead to, unless whoever installs them says otherwise."""


class Severity(StrEnum):
    """Whom it wakes."""

    CRITICAL = "critical"
    """People: clients are, or soon will be, without service."""
    WARNING = "warning"
    """Nobody before the morning."""


@dataclass(frozen=True, kw_only=True)
class Alert:
    """One rule."""

    name: str
    severity: Severity
    measured: str
    """The expression whose value is told."""
    bad: str
    """What follows it: a comparison, and perhaps a further condition."""
    lasts: str = ""
    """How long it has to be so, as in `5m`; at once, if that is empty."""
    summary: str
    """What is wrong, and where, in a line; labels stand in it as templates of Prometheus."""
    description: str
    """What follows from it for clients, and what it mostly is."""
    may_be_empty: bool = False
    """Whether what is measured may be absent while all is well."""

    @property
    def expression(self) -> str:
        return f"{self.measured} {self.bad}" if self.bad else self.measured

    @property
    def runbook(self) -> str:
        return f"{RUNBOOK}#{self.name.lower()}"


@dataclass(frozen=True)
class Group:
    """Alerts about one part of the house, which Prometheus looks at together."""

    name: str
    alerts: tuple[Alert, ...]


OF_CLUSTER: Final = ("namespace", "cluster")
CLUSTER: Final = "{{ $labels.namespace }}/{{ $labels.cluster }}"
BROKER: Final = f"Broker {{{{ $labels.pod }}}} of {CLUSTER}"
