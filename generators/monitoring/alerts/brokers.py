"""Alerts about brokers that are down, do not serve, disagree or are overloaded."""

from typing import Final

from generators.monitoring.alerts.rule import (
    BROKER,
    CLUSTER,
    CLUSTER_LABELS,
    Alert,
    RuleGroup,
    Severity,
)
from generators.monitoring.promql import (
    histogram_quantile,
    matches,
    max_by,
    min_by,
    selector,
    sum_by,
)

_UP: Final = selector("up", matches("service", ".+-broker-headless"))
_CERTIFICATE_LIFETIME: Final = "kafscale_certificate_expiration_timestamp_seconds - time()"

BROKERS: Final = RuleGroup(
    "kafscale-brokers",
    (
        Alert(
            name="KafscaleBrokerDown",
            severity=Severity.WARNING,
            measured=_UP,
            condition="== 0",
            duration="5m",
            summary="Broker {{ $labels.pod }} in {{ $labels.namespace }} is down.",
            description="Prometheus could not scrape it for five minutes. Other brokers have "
            "taken over its partitions, so clients continue.",
        ),
        Alert(
            name="KafscaleAllBrokersDown",
            severity=Severity.CRITICAL,
            measured=sum_by(_UP, "namespace", "service"),
            condition="== 0",
            duration="1m",
            summary="All brokers of {{ $labels.service }} in {{ $labels.namespace }} are down.",
            description="Clients have no service. All brokers have the same cause: the object "
            "store or etcd is unavailable, the image cannot be pulled, or a quota is exhausted.",
        ),
        Alert(
            name="KafscaleBrokerNotServing",
            severity=Severity.CRITICAL,
            measured="kafscale_lease_valid",
            condition="== 0",
            duration="2m",
            summary=f"{BROKER} is running, but has no valid etcd lease.",
            description="It rejects clients until etcd responds; other brokers take over its "
            "partitions. If all brokers are affected, etcd is the cause.",
        ),
        Alert(
            name="KafscaleBrokersDisagree",
            severity=Severity.WARNING,
            measured=max_by("kafscale_brokers", *CLUSTER_LABELS),
            condition="!= " + min_by("kafscale_brokers", *CLUSTER_LABELS),
            duration="10m",
            summary=f"Brokers of {CLUSTER} disagree on the number of brokers.",
            description="A broker gets no updates from etcd, and returns outdated metadata to "
            "clients.",
        ),
        Alert(
            name="KafscaleNoController",
            severity=Severity.CRITICAL,
            measured=sum_by("kafscale_controller", *CLUSTER_LABELS),
            condition="!= 1",
            duration="5m",
            summary=f"{CLUSTER} has {{{{ $value }}}} controllers, expected 1.",
            description="Without a controller, partitions of a failed broker get no new owner. "
            "Two are harmless, but one of them has lost its connection to etcd.",
        ),
        Alert(
            name="KafscaleBrokerRestarts",
            severity=Severity.WARNING,
            measured="resets(kafscale_broker_uptime_seconds[1h])",
            condition="> 3",
            summary=f"{BROKER} has restarted {{{{ $value }}}} times within an hour.",
            description="Each restart moves its partitions twice, and clients wait. Usually the "
            "memory limit is too low, or an overloaded broker fails its liveness probe.",
        ),
        Alert(
            name="KafscaleCertificateExpiresSoon",
            severity=Severity.WARNING,
            measured=_CERTIFICATE_LIFETIME,
            may_be_empty=True,  # Without TLS.
            condition="< 7 * 86400",
            duration="60m",
            summary=f"{{{{ $labels.setting }}}} of {BROKER} expires in "
            "{{ $value | humanizeDuration }}.",
            description="It was not renewed, or the new file has not reached the broker. "
            "Certificates that live for days only need a shorter time here.",
        ),
        Alert(
            name="KafscaleCertificateExpires",
            severity=Severity.CRITICAL,
            measured=_CERTIFICATE_LIFETIME,
            may_be_empty=True,  # Without TLS.
            condition="< 86400",
            duration="5m",
            summary=f"{{{{ $labels.setting }}}} of {BROKER} expires in "
            "{{ $value | humanizeDuration }}.",
            description="After that, new connections fail: those of clients (tls), of the operator "
            "and the console (control.tls), or to etcd (etcd.tls), without which the broker stops "
            "serving. The value is negative once it has expired, or if the file cannot be read.",
        ),
        Alert(
            name="KafscaleBrokerBusy",
            severity=Severity.WARNING,
            measured=histogram_quantile(
                0.99, "kafscale_event_loop_lag_seconds_bucket", "namespace", "cluster", "pod"
            ),
            condition="> 0.5",
            duration="15m",
            summary=f"{BROKER} has an event loop lag of {{{{ $value | humanizeDuration }}}}.",
            description="Its CPU, or that of its node, is saturated: all its responses are late, "
            "and its lease may expire. Each delay of half a second or more is in its log as "
            "`event loop blocked`, with the CPU time it used meanwhile.",
        ),
    ),
)
