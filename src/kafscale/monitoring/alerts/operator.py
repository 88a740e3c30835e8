"""Alerts about the operator itself."""

from typing import Final

from kafscale.monitoring.alerts.rule import Alert, Group, Severity
from kafscale.monitoring.promql import equals, increase, series, total

OPERATOR: Final = Group(
    "kafscale-operator",
    (
        Alert(
            name="KafscaleOperatorDown",
            severity=Severity.CRITICAL,
            measured="absent(kafscale_operator_leader)",
            bad="",
            lasts="5m",
            may_be_empty=True,
            summary="No operator of Kafscale answers; clusters run on, but nobody looks after "
            "them.",
            description="Nobody rolls, repairs, scales down in good order, or takes snapshots.",
        ),
        Alert(
            name="KafscaleOperatorNotLeading",
            severity=Severity.CRITICAL,
            measured=total("kafscale_operator_leader", "namespace", "service"),
            bad="!= 1",
            lasts="2m",
            summary="Of the operators behind {{ $labels.service }} in {{ $labels.namespace }}, "
            "{{ $value }} lead, where it should be one.",
            description="None: the API server does not let any of them have the Lease. Two: "
            "there are two installations in one namespace.",
        ),
        Alert(
            name="KafscaleReconcileErrors",
            severity=Severity.WARNING,
            measured=total(
                increase(
                    series("kafscale_operator_reconcile_total", equals("result", "error")), "15m"
                ),
                "kind",
            ),
            bad="> 3",
            lasts="15m",
            may_be_empty=True,
            summary="The operator keeps failing to bring a {{ $labels.kind }} to what it asks for.",
            description="All others are looked after; this one stays as it is.",
        ),
        Alert(
            name="KafscaleDrainsFail",
            severity=Severity.WARNING,
            measured=total(
                increase(series("kafscale_operator_drains_total", equals("result", "error")), "1h")
            ),
            bad="> 0",
            lasts="15m",
            may_be_empty=True,
            summary="Brokers could not be made to hand over what they own before they were to be "
            "stopped.",
            description="They did so themselves, or others took over when their leases ended: "
            "clients waited, and nothing is lost.",
        ),
    ),
)
