"""The CA and the certificates of a managed etcd, as Secrets. Pure.

Invariants:

* A certificate is valid for a year. It is renewed after two thirds of that, if its hosts differ, or
  if it was issued by another CA. Otherwise it stays as it is.
* Members read their certificate again for every connection, so that a renewal interrupts nothing.
  They read the CA bundle only at the start: a change of `trust_checksum` restarts them. Brokers
  read everything at the start, and are restarted when the clients' Secret changes.
* The CA is valid for ten years, in a Secret that is in no pod. It is replaced after two thirds of
  that, or if its Secret is lost. A trusted CA stays trusted until it expires. A new CA is trusted
  for a day before it issues: by then all members and clients have been restarted with the new
  bundle; those with an old one would reject its certificates.
"""

import base64
import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.etcd import stateful_set
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster
from kafscale.security.tls.issuer import CLOCK_SKEW, CertificateIssuer, IssuedCertificate

CA_VALIDITY_DAYS: Final = 3650
TRUST_PERIOD: Final = dt.timedelta(days=1)

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
CA_BUNDLE: Final = "ca.crt"
"""The entries of a Secret: a certificate, its key, and the trusted CAs."""

Entries = Mapping[str, bytes]
"""The decoded data of a Secret."""
LEAF_VALIDITY_DAYS: Final = 365
CLIENT_NAME: Final = "kafscale-client"
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


class CertificateAuthority(NamedTuple):
    """The current CA and the former ones that are still trusted."""

    own: IssuedCertificate
    former_cas: tuple[x509.Certificate, ...]

    @classmethod
    def of(
        cls, entries: Entries | None, others: Iterable[Entries], name: str, now: dt.datetime
    ) -> Self:
        """The CA of a Secret, or a new one; `others` hold the bundles that were trusted so far."""
        own = read_issued(entries)
        trusted_before = [
            each
            for secret_entries in (entries or {}, *others)
            for each in _certificates(secret_entries)
        ]
        if own is None or is_renewal_due(own.certificate, now):
            own = CertificateIssuer.create(now, CA_VALIDITY_DAYS, name).own
        unexpired = [each for each in trusted_before if each.not_valid_after_utc > now]
        former_cas = dict.fromkeys(each for each in unexpired if each != own.certificate)
        return cls(own, tuple(former_cas))

    def may_issue(self, now: dt.datetime) -> bool:
        """Whether all members and clients have had time to trust it."""
        starts = self.own.certificate.not_valid_before_utc + CLOCK_SKEW
        return not self.former_cas or now - starts >= TRUST_PERIOD

    @property
    def bundle_pem(self) -> bytes:
        """All trusted CAs."""
        certificates = (self.own.certificate, *self.former_cas)
        return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)

    @property
    def entries(self) -> dict[str, bytes]:
        """The data of its Secret."""
        return {
            CERTIFICATE: self.own.certificate_pem,
            KEY: self.own.key_pem,
            CA_BUNDLE: self.bundle_pem,
        }


def read_issued(entries: Entries | None) -> IssuedCertificate | None:
    """The certificate and key of a Secret; None if they are missing, damaged or do not match."""
    try:
        return IssuedCertificate.read(entries[CERTIFICATE], entries[KEY]) if entries else None
    except (KeyError, ValueError, TypeError):
        return None


def is_renewal_due(certificate: x509.Certificate, now: dt.datetime) -> bool:
    """Whether two thirds of a certificate's validity have passed."""
    starts, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return now >= starts + (ends - starts) * 2 / 3


def _certificates(entries: Entries) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(entries[CA_BUNDLE])
    except (KeyError, ValueError):
        return []


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
        *_LOCAL,
    ]


def secrets_to_write(
    cluster: Cluster, platform: Platform, existing: Mapping[str, Manifest], now: dt.datetime
) -> list[Manifest]:
    """The Secrets that have to be written, given the existing ones by name."""
    existing_entries = {name: _entries(secret) for name, secret in existing.items()}
    ca_name, server_name, client_name = secret_names(cluster)
    server, client = existing_entries.get(server_name), existing_entries.get(client_name)
    ca = CertificateAuthority.of(
        existing_entries.get(ca_name),
        [each for each in (server, client) if each],
        f"etcd of {cluster.namespace}/{cluster.name}"[:64],
        now,
    )
    desired = {
        ca_name: ca.entries,
        server_name: _leaf(ca, server, stateful_set.COMMON_NAME, hosts(cluster, platform), now),
        client_name: _leaf(ca, client, CLIENT_NAME, (), now),
    }
    return [
        _secret(cluster, name, entries)
        for name, entries in desired.items()
        if entries != existing_entries.get(name)
    ]


def trust_checksum(secret: Manifest) -> str:
    """A checksum of the CAs that the holder of a Secret trusts."""
    return hashlib.sha256(_entries(secret).get(CA_BUNDLE, b"")).hexdigest()[:32]


def _leaf(
    ca: CertificateAuthority,
    existing_entries: Entries | None,
    name: str,
    desired_hosts: Sequence[str],
    now: dt.datetime,
) -> dict[str, bytes]:
    """The data of the Secret of a certificate."""
    issued = read_issued(existing_entries)
    if issued is None or not _is_usable(ca, issued, desired_hosts, now):
        issuer = CertificateIssuer(ca.own, now, LEAF_VALIDITY_DAYS)
        issued = issuer.server(name, desired_hosts) if desired_hosts else issuer.client(name)
    return {CERTIFICATE: issued.certificate_pem, KEY: issued.key_pem, CA_BUNDLE: ca.bundle_pem}


def _is_usable(
    ca: CertificateAuthority,
    issued: IssuedCertificate,
    desired_hosts: Sequence[str],
    now: dt.datetime,
) -> bool:
    """Whether a certificate may stay; one that is due stays until the new CA may issue."""
    certificate = issued.certificate
    if certificate.not_valid_after_utc <= now or _hosts(certificate) != set(desired_hosts):
        return False
    if not any(_is_issued_by(certificate, each) for each in (ca.own.certificate, *ca.former_cas)):
        return False
    is_from_current_ca = _is_issued_by(certificate, ca.own.certificate)
    return (is_from_current_ca and not is_renewal_due(certificate, now)) or not ca.may_issue(now)


def _is_issued_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _hosts(certificate: x509.Certificate) -> set[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return set()
    return {str(each.value) for each in extension.value}


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
