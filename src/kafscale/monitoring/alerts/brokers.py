"""Alerts about brokers: those that are gone, do not serve, disagree, or are too busy."""

from typing import Final

from kafscale.monitoring.alerts.rule import BROKER, CLUSTER, OF_CLUSTER, Alert, Group, Severity
from kafscale.monitoring.promql import largest, matches, quantile, series, smallest, total

_UP: Final = series("up", matches("service", ".+-broker-headless"))

BROKERS: Final = Group(
    "kafscale-brokers",
    (
        Alert(
            name="KafscaleBrokerDown",
            severity=Severity.WARNING,
            measured=_UP,
            bad="== 0",
            lasts="5m",
            summary="Broker {{ $labels.pod }} in {{ $labels.namespace }} does not answer.",
            description="Prometheus has not reached its metrics for five minutes. Others have "
            "taken its partitions over, so that clients go on.",
        ),
        Alert(
            name="KafscaleAllBrokersDown",
            severity=Severity.CRITICAL,
            measured=total(_UP, "namespace", "service"),
            bad="== 0",
            lasts="1m",
            summary="No broker behind {{ $labels.service }} in {{ $labels.namespace }} answers.",
            description="Clients have no service. It is one cause for all of them: a store that "
            "is away, an image, a quota of the namespace.",
        ),
        Alert(
            name="KafscaleBrokerNotServing",
            severity=Severity.CRITICAL,
            measured="kafscale_lease_valid",
            bad="== 0",
            lasts="2m",
            summary=f"{BROKER} runs, but etcd does not confirm its lease.",
            description="It refuses clients until etcd answers; others take over what it owned. "
            "If it is all brokers, etcd is the cause.",
        ),
        Alert(
            name="KafscaleBrokersDisagree",
            severity=Severity.WARNING,
            measured=largest("kafscale_brokers", *OF_CLUSTER),
            bad="!= " + smallest("kafscale_brokers", *OF_CLUSTER),
            lasts="10m",
            summary=f"Brokers of {CLUSTER} do not agree on how many of them there are.",
            description="One of them does not hear from etcd, and tells clients what was true "
            "some time ago.",
        ),
        Alert(
            name="KafscaleNoController",
            severity=Severity.CRITICAL,
            measured=total("kafscale_controller", *OF_CLUSTER),
            bad="!= 1",
            lasts="5m",
            summary=f"{CLUSTER} has {{{{ $value }}}} controllers, where there should be one.",
            description="Without one, partitions of a broker that is lost stay without an owner. "
            "Two can do no harm, but one of them is cut off from etcd.",
        ),
        Alert(
            name="KafscaleBrokerRestarts",
            severity=Severity.WARNING,
            measured="resets(kafscale_broker_uptime_seconds[1h])",
            bad="> 3",
            summary=f"{BROKER} has restarted {{{{ $value }}}} times within an hour.",
            description="Each restart moves its partitions twice, and clients wait meanwhile. "
            "Mostly memory that is too small, or a probe that a busy broker does not answer.",
        ),
        Alert(
            name="KafscaleBrokerBusy",
            severity=Severity.WARNING,
            measured=quantile(
                0.99, "kafscale_event_loop_lag_seconds_bucket", "namespace", "cluster", "pod"
            ),
            bad="> 0.5",
            lasts="15m",
            summary="Everything waits {{ $value | humanizeDuration }} at broker "
            f"{{{{ $labels.pod }}}} of {CLUSTER}.",
            description="Its core is full, or that of its node: all of its clients are answered "
            "late, and its lease is in danger.",
        ),
    ),
)
