"""The CA and the certificates of a managed etcd, as Secrets. Pure.

Invariants: members read their certificate again for every connection, so that a renewal interrupts
nothing. They read the CA bundle only at the start: a change of `trust_checksum` restarts them.
Brokers read everything at the start, and are restarted when the clients' Secret changes. The CA is
in a Secret that is in no pod.
"""

import datetime as dt
import hashlib
from collections.abc import Mapping
from typing import Final

from kafscale.operator.certificates import (
    CA_BUNDLE,
    LOCAL_HOSTS,
    CertificateAuthority,
    Holder,
    entries_of,
    tls_secret,
)
from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.etcd import stateful_set
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster

CLIENT_NAME: Final = "kafscale-client"


def secret_names(cluster: Cluster) -> list[str]:
    """The Secrets of the CA, the members and the clients."""
    return [names.etcd_ca(cluster), names.etcd_server_tls(cluster), names.etcd_client_tls(cluster)]


def hosts(cluster: Cluster, platform: Platform) -> list[str]:
    """All host names of all possible members."""
    space, domain = cluster.namespace, platform.cluster_domain
    service = names.etcd(cluster)
    return [
        *(stateful_set.host(cluster, platform, index) for index in range(stateful_set.COUNT_MAX)),
        names.pod_host("*", names.etcd_headless(cluster), space, domain),
        f"{service}.{space}.svc.{domain}",
        f"{service}.{space}.svc",
        f"{service}.{space}",
        service,
        *LOCAL_HOSTS,
    ]


def secrets_to_write(
    cluster: Cluster, platform: Platform, existing: Mapping[str, Manifest], now: dt.datetime
) -> list[Manifest]:
    """The Secrets that have to be written, given the existing ones by name."""
    existing_entries = {name: entries_of(secret) for name, secret in existing.items()}
    ca_name, server_name, client_name = secret_names(cluster)
    server, client = existing_entries.get(server_name), existing_entries.get(client_name)
    ca = CertificateAuthority.of(
        existing_entries.get(ca_name),
        [each for each in (server, client) if each],
        f"etcd of {cluster.namespace}/{cluster.name}",
        now,
    )
    member = Holder(stateful_set.COMMON_NAME, hosts(cluster, platform))
    desired = {
        ca_name: ca.entries,
        server_name: ca.issue(member, server, now),
        client_name: ca.issue(Holder(CLIENT_NAME, is_server=False), client, now),
    }
    return [
        tls_secret(names.metadata(cluster, name, names.ETCD_APP), entries)
        for name, entries in desired.items()
        if entries != existing_entries.get(name)
    ]


def trust_checksum(secret: Manifest) -> str:
    """A checksum of the CAs that the holder of a Secret trusts."""
    return hashlib.sha256(entries_of(secret).get(CA_BUNDLE, b"")).hexdigest()[:32]
