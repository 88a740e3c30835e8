"""The ports of brokers, and the host names that clients use.

Invariants: 9092, 9093 and 9095 are always among the ports, because Services, probes and the
operator use them. Further listeners come from `spec.config.settings.broker.listeners`. Clients
reach a pod by its name in the headless Service or, from outside, by what `advertisedListeners`
makes of `$(POD_NAME)`.
"""

import re
from typing import Any, Final

from kafscale.operator.manifests import names
from kafscale.operator.manifests.names import Platform
from kafscale.operator.manifests.pods import POD_NAME
from kafscale.operator.manifests.settings_tree import value_at
from kafscale.operator.spec.cluster import Cluster

KAFKA: Final = "kafka"
METRICS: Final = "metrics"
CONTROL: Final = "control"
OWN_PORTS: Final = {METRICS: names.METRICS_PORT, CONTROL: names.CONTROL_PORT}
"""The ports that are not for Kafka clients, by their names in Services and containers."""

_LISTENER: Final = re.compile(r"(?P<name>[^:\s]+)://\S*:(?P<port>\d{1,5})")


def listeners(cluster: Cluster) -> dict[str, int]:
    """The ports of the valid listeners by name; empty if only the default listener exists."""
    matches = map(_LISTENER.fullmatch, _entries(cluster, "broker.listeners"))
    return {match["name"]: int(match["port"]) for match in matches if match}


def client_ports(cluster: Cluster) -> dict[str, int]:
    """The ports for Kafka clients, by their names in Services and containers."""
    further = set(listeners(cluster).values()) - {0, names.KAFKA_PORT}
    return {KAFKA: names.KAFKA_PORT, **{f"{KAFKA}-{port}": port for port in sorted(further)}}


def advertised_host(cluster: Cluster, platform: Platform) -> str:
    """The host name of a broker inside Kubernetes."""
    headless = names.broker_headless(cluster)
    return names.pod_host(POD_NAME, headless, cluster.namespace, platform.cluster_domain)


def advertised_listeners(cluster: Cluster, platform: Platform) -> list[str]:
    """The advertised address of each listener; empty if only the default listener exists."""
    host = advertised_host(cluster, platform)
    configured = _entries(cluster, "broker.advertisedListeners")
    configured_names = {entry.partition("://")[0] for entry in configured}
    others = {
        name: port for name, port in listeners(cluster).items() if name not in configured_names
    }
    return [*configured, *(f"{name}://{host}:{port}" for name, port in others.items())]


def _entries(cluster: Cluster, path: str) -> list[str]:
    value: Any = value_at(cluster.spec.config.settings, path)
    entries = value.split(",") if isinstance(value, str) else value
    return [str(entry).strip() for entry in entries] if isinstance(entries, list) else []
