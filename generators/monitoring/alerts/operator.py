"""Alerts about the operator."""

from typing import Final

from generators.monitoring.alerts.rule import Alert, RuleGroup, Severity
from generators.monitoring.promql import equals, increase, selector, sum_by

OPERATOR: Final = RuleGroup(
    "kafscale-operator",
    (
        Alert(
            name="KafscaleOperatorDown",
            severity=Severity.CRITICAL,
            measured="absent(kafscale_operator_leader)",
            condition="",
            duration="5m",
            may_be_empty=True,
            summary="The Kafscale operator is down; clusters keep running unattended.",
            description="There are no rollouts, repairs, scaling or snapshots.",
        ),
        Alert(
            name="KafscaleOperatorNotLeading",
            severity=Severity.CRITICAL,
            measured=sum_by("kafscale_operator_leader", "namespace", "service"),
            condition="!= 1",
            duration="2m",
            summary="{{ $labels.service }} in {{ $labels.namespace }} has {{ $value }} leaders, "
            "expected 1.",
            description="None: no replica can acquire the Lease from the API server. Two: there "
            "are two installations in one namespace.",
        ),
        Alert(
            name="KafscaleReconcileErrors",
            severity=Severity.WARNING,
            measured=sum_by(
                increase(
                    selector("kafscale_operator_reconcile_total", equals("result", "error")), "15m"
                ),
                "kind",
            ),
            condition="> 3",
            duration="15m",
            may_be_empty=True,
            summary="The operator repeatedly fails to reconcile a {{ $labels.kind }}.",
            description="Other resources are reconciled; this one is not changed.",
        ),
        Alert(
            name="KafscaleDrainsFail",
            severity=Severity.WARNING,
            measured=sum_by(
                increase(
                    selector("kafscale_operator_drains_total", equals("result", "error")), "1h"
                )
            ),
            condition="> 0",
            duration="15m",
            may_be_empty=True,
            summary="The operator could not drain brokers before stopping them.",
            description="The brokers drained themselves, or others took over when their leases "
            "expired: clients waited, and no record is lost.",
        ),
    ),
)
