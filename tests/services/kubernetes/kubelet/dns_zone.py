"""The DNS zone of the cluster: names and their addresses.

A Service with a cluster IP has one name. A headless Service resolves to all its endpoints, and each
endpoint with a host name has a name below it. The controller that writes the slices decides whether
unready endpoints count (`publishNotReadyAddresses`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

Manifest = Mapping[str, Any]
Zone = Mapping[str, tuple[str, ...]]

DOMAIN = "svc.cluster.local"
SERVICE_NAME = "kubernetes.io/service-name"


def zone(services: Iterable[Manifest], slices: Iterable[Manifest]) -> Zone:
    """All names in full, without a dot at the end, with their addresses."""
    names: dict[str, list[str]] = {}
    headless: set[str] = set()
    for service in services:
        metadata, address = service["metadata"], service["spec"].get("clusterIP")
        name = f"{metadata['name']}.{metadata['namespace']}.{DOMAIN}"
        if address == "None":
            headless.add(name)
        elif address:
            names[name] = [address]
    for each in slices:
        metadata = each["metadata"]
        service_name = metadata.get("labels", {}).get(SERVICE_NAME)
        name = f"{service_name}.{metadata['namespace']}.{DOMAIN}"
        if name in headless:
            for endpoint in ready(each):
                names.setdefault(name, []).extend(endpoint["addresses"])
                if host := endpoint.get("hostname"):
                    names.setdefault(f"{host}.{name}", []).extend(endpoint["addresses"])
    return {name: tuple(sorted(addresses)) for name, addresses in names.items()}


def ready(endpoint_slice: Manifest) -> list[Manifest]:
    """The endpoints of a slice that are ready, or count as such."""
    endpoints = endpoint_slice.get("endpoints") or ()
    return [each for each in endpoints if each.get("conditions", {}).get("ready", True)]
