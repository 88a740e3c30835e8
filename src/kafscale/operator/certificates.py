"""A CA and the certificates that it issues, as entries of Secrets. Pure.

Invariants:

* A certificate is valid for a year. It is renewed after two thirds of that, if its names differ, or
  if it was issued by another CA. Otherwise it stays as it is.
* A CA is valid for ten years. It is replaced after two thirds of that, or if its Secret is lost. A
  trusted CA stays trusted until it expires. A new CA is trusted for a day before it issues: by then
  both sides of every connection have the new bundle; those with an old one would reject its
  certificates.
"""

import base64
import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization

from kafscale.net.address import canonical_ip
from kafscale.operator.kube.api import Manifest
from kafscale.security.tls.issuer import CLOCK_SKEW, CertificateIssuer, IssuedCertificate

CA_VALIDITY_DAYS: Final = 3650
TRUST_PERIOD: Final = dt.timedelta(days=1)
LEAF_VALIDITY_DAYS: Final = 365
COMMON_NAME_LENGTH_MAX: Final = 64

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
CA_BUNDLE: Final = "ca.crt"
"""The entries of a Secret: a certificate, its key, and the trusted CAs."""
LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")

Entries = Mapping[str, bytes]
"""The decoded data of a Secret."""


class Holder(NamedTuple):
    """The holder of a certificate."""

    common_name: str
    hosts: Sequence[str] = ()
    is_server: bool = True
    """A server's certificate is valid for its connections as a client, too."""


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
            own = CertificateIssuer.create(now, CA_VALIDITY_DAYS, name[:COMMON_NAME_LENGTH_MAX]).own
        unexpired = [each for each in trusted_before if each.not_valid_after_utc > now]
        former_cas = dict.fromkeys(each for each in unexpired if each != own.certificate)
        return cls(own, tuple(former_cas))

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

    def issue(self, holder: Holder, existing: Entries | None, now: dt.datetime) -> dict[str, bytes]:
        """The data of the Secret of a certificate; the existing one stays if it is usable."""
        issued = read_issued(existing)
        if issued is None or not self._is_usable(issued.certificate, holder, now):
            issuer = CertificateIssuer(self.own, now, LEAF_VALIDITY_DAYS)
            sign = issuer.server if holder.is_server else issuer.client
            issued = sign(holder.common_name, holder.hosts)
        return {
            CERTIFICATE: issued.certificate_pem,
            KEY: issued.key_pem,
            CA_BUNDLE: self.bundle_pem,
        }

    def _is_usable(self, certificate: x509.Certificate, holder: Holder, now: dt.datetime) -> bool:
        """Whether a certificate may stay; one that is due stays until the new CA may issue."""
        if certificate.not_valid_after_utc <= now or _hosts(certificate) != {
            *map(canonical_ip, holder.hosts)
        }:
            return False
        cas = (self.own.certificate, *self.former_cas)
        if not any(_is_issued_by(certificate, each) for each in cas):
            return False
        is_current = _is_issued_by(certificate, self.own.certificate)
        return (is_current and not is_renewal_due(certificate, now)) or not self._may_issue(now)

    def _may_issue(self, now: dt.datetime) -> bool:
        """Whether all holders of certificates have had time to trust it."""
        starts = self.own.certificate.not_valid_before_utc + CLOCK_SKEW
        return not self.former_cas or now - starts >= TRUST_PERIOD


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


def entries_of(secret: Manifest) -> Entries:
    data: Mapping[str, str] = secret.get("data") or {}
    return {name: base64.b64decode(value) for name, value in data.items()}


def tls_secret(metadata: Manifest, entries: Entries) -> Manifest:
    """The manifest of a Secret with these entries."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": metadata,
        "data": {key: base64.b64encode(value).decode() for key, value in entries.items()},
    }


def _certificates(entries: Entries) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(entries[CA_BUNDLE])
    except (KeyError, ValueError):
        return []


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
