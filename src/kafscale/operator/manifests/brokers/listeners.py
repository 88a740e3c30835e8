"""The ports that brokers serve on, and the names under which clients reach them there.

The law: 9092 and 9093 are always among them, because Services and probes say so. Further listeners
come from `spec.config.settings.broker.listeners`; a pod is reached under its own name in the
headless Service, or, from the outside, under what `advertisedListeners` makes of `$(POD_NAME)`.
"""

import re
from typing import Any, Final

from kafscale.operator.manifests import names
from kafscale.operator.manifests.names import Platform
from kafscale.operator.manifests.pod_spec import POD_NAME
from kafscale.operator.manifests.settings_tree import value_at
from kafscale.operator.spec.cluster import Cluster

KAFKA: Final = "kafka"
METRICS: Final = "metrics"
CONTROL: Final = "control"

_LISTENER: Final = re.compile(r"(?P<name>[^:\s]+)://\S*:(?P<port>\d{1,5})")
_PORT: Final = re.compile(r"[1-9]\d{0,4}")


def listeners(cluster: Cluster) -> dict[str, int]:
    """The ports of listeners by name, as far as they can be understood; none for the one."""
    matches = map(_LISTENER.fullmatch, _entries(cluster, "broker.listeners"))
    return {match["name"]: int(match["port"]) for match in matches if match}


def client_ports(cluster: Cluster) -> dict[str, int]:
    """The ports for Kafka clients, by the names that Services and containers have for them."""
    further = set(listeners(cluster).values()) - {0, names.KAFKA_PORT}
    return {KAFKA: names.KAFKA_PORT, **{f"{KAFKA}-{port}": port for port in sorted(further)}}


def control_ports(cluster: Cluster) -> dict[str, int]:
    """The ports for metrics and for the control plane, which share one unless it is told."""
    port = str(value_at(cluster.spec.config.settings, "broker.controlPort"))
    own = {CONTROL: int(port)} if _PORT.fullmatch(port) else {}
    return {METRICS: names.METRICS_PORT, **own}


def advertised_host(cluster: Cluster, platform: Platform) -> str:
    """The name of a broker inside Kubernetes."""
    headless = names.broker_headless(cluster)
    return names.pod_host(POD_NAME, headless, cluster.namespace, platform.cluster_domain)


def advertised_listeners(cluster: Cluster, platform: Platform) -> list[str]:
    """Where clients reach each of a broker's listeners; nothing where there is but the one."""
    host = advertised_host(cluster, platform)
    given = _entries(cluster, "broker.advertisedListeners")
    named = {entry.partition("://")[0] for entry in given}
    others = {name: port for name, port in listeners(cluster).items() if name not in named}
    return [*given, *(f"{name}://{host}:{port}" for name, port in others.items())]


def _entries(cluster: Cluster, path: str) -> list[str]:
    written: Any = value_at(cluster.spec.config.settings, path)
    entries = written.split(",") if isinstance(written, str) else written
    return [str(entry).strip() for entry in entries] if isinstance(entries, list) else []
