"""The certificates of a managed etcd: of its members and of its clients, as Secrets. Pure.

The laws: a certificate lasts a year and is renewed when two thirds of it are over, when it is not
for the right hosts, or when another authority issues. What is good stays as it is. Members read
their certificate anew for every connection, so a renewal disturbs nobody; the list of who is
trusted they read only when they start, which is what `trust_checksum` is for. Brokers read all of
it when they start: who looks after them restarts them when the clients' Secret changes.
"""

import base64
import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from kafscale.operator.etcd.authority import TRUSTED, Authority, Entries, is_due, read
from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.etcd import pods, stateful_set
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster
from kafscale.security.tls.dev_ca import DevCa, IssuedCertificate

LIFE_DAYS: Final = 365
CLIENT_NAME: Final = "kafscale-client"

_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


def secret_names(cluster: Cluster) -> list[str]:
    """The Secrets that this is about."""
    return [
        names.etcd_authority(cluster),
        names.etcd_server_tls(cluster),
        names.etcd_client_tls(cluster),
    ]


def hosts(cluster: Cluster, platform: Platform) -> list[str]:
    """All names of all members, also of those that there might be one day."""
    space, domain = cluster.namespace, platform.cluster_domain
    service = names.etcd(cluster)
    return [
        *(stateful_set.host(cluster, platform, index) for index in range(stateful_set.COUNT_MAX)),
        names.pod_host("*", names.etcd_headless(cluster), space, domain),
        f"{service}.{space}.svc.{domain}",
        f"{service}.{space}.svc",
        f"{service}.{space}",
        service,
        *_LOCAL,
    ]


def needed(
    cluster: Cluster, platform: Platform, existing: Mapping[str, Manifest], now: dt.datetime
) -> list[Manifest]:
    """The Secrets that have to be written, given those that exist, by their names."""
    found = {name: _entries(secret) for name, secret in existing.items()}
    authority_name, server_name, client_name = secret_names(cluster)
    server, client = found.get(server_name), found.get(client_name)
    authority = Authority.of(
        found.get(authority_name),
        [each for each in (server, client) if each],
        f"etcd of {cluster.namespace}/{cluster.name}"[:64],
        now,
    )
    wanted = {
        authority_name: authority.entries,
        server_name: _leaf(authority, server, pods.COMMON_NAME, hosts(cluster, platform), now),
        client_name: _leaf(authority, client, CLIENT_NAME, (), now),
    }
    return [
        _secret(cluster, name, entries)
        for name, entries in wanted.items()
        if entries != found.get(name)
    ]


def trust_checksum(secret: Manifest) -> str:
    """What changes when the authorities do that a Secret has its holder trust."""
    return hashlib.sha256(_entries(secret).get(TRUSTED, b"")).hexdigest()[:32]


def _leaf(
    authority: Authority,
    found: Entries | None,
    name: str,
    wanted_hosts: Sequence[str],
    now: dt.datetime,
) -> dict[str, bytes]:
    """What the Secret of a certificate holds."""
    issued = read(found)
    if issued is None or not _is_good(authority, issued, wanted_hosts, now):
        issuer = DevCa(authority.own, now, LIFE_DAYS)
        issued = issuer.server(name, wanted_hosts) if wanted_hosts else issuer.client(name)
    return {
        "tls.crt": issued.certificate_pem,
        "tls.key": issued.key_pem,
        TRUSTED: authority.trusted_pem,
    }


def _is_good(
    authority: Authority, issued: IssuedCertificate, wanted_hosts: Sequence[str], now: dt.datetime
) -> bool:
    """Whether a certificate may stay; also one that should go, until its issuer may issue."""
    certificate = issued.certificate
    if certificate.not_valid_after_utc <= now or _hosts(certificate) != set(wanted_hosts):
        return False
    if not any(
        _is_issued_by(certificate, each)
        for each in (authority.own.certificate, *authority.predecessors)
    ):
        return False
    is_of_today = _is_issued_by(certificate, authority.own.certificate)
    return (is_of_today and not is_due(certificate, now)) or not authority.may_issue(now)


def _is_issued_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _hosts(certificate: x509.Certificate) -> set[str]:
    try:
        names_of = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return set()
    return {str(each.value) for each in names_of.value}


def _entries(secret: Manifest) -> Entries:
    data: Mapping[str, str] = secret.get("data") or {}
    return {name: base64.b64decode(value) for name, value in data.items()}


def _secret(cluster: Cluster, name: str, entries: Entries) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": names.metadata(cluster, name, names.ETCD_APP),
        "data": {key: base64.b64encode(value).decode() for key, value in entries.items()},
    }
