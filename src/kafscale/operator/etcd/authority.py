"""The authority behind the certificates of a managed etcd, kept in a Secret that no pod has. Pure.

The laws: it lasts ten years, and has a successor when two thirds of that are over, or when its
Secret is lost. Whoever is trusted stays so until the end of its life. A successor is trusted for a
day before it issues anything: by then everybody has been started with the new list, because who
compares certificates with an old list would refuse what it issues.
"""

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Self

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from kafscale.security.tls.dev_ca import CLOCK_SKEW, DevCa, IssuedCertificate

LIFE_DAYS: Final = 3650
PROBATION: Final = dt.timedelta(days=1)

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
TRUSTED: Final = "ca.crt"
"""The entries of a Secret: a certificate, its key, and the authorities to compare others with."""

Entries = Mapping[str, bytes]
"""What is in a Secret."""


class Authority(NamedTuple):
    """Who issues certificates, and who has done so before."""

    own: IssuedCertificate
    predecessors: tuple[x509.Certificate, ...]

    @classmethod
    def of(
        cls, entries: Entries | None, others: Iterable[Entries], name: str, now: dt.datetime
    ) -> Self:
        """The one that a Secret holds, or a successor; `others` tell who was trusted so far."""
        own = read(entries)
        known = [each for found in (entries or {}, *others) for each in _certificates(found)]
        if own is None or is_due(own.certificate, now):
            own = DevCa.create(now, LIFE_DAYS, name).own
        lasting = [each for each in known if each.not_valid_after_utc > now]
        predecessors = dict.fromkeys(each for each in lasting if each != own.certificate)
        return cls(own, tuple(predecessors))

    def may_issue(self, now: dt.datetime) -> bool:
        """Whether everybody has had the time to trust it."""
        begins = self.own.certificate.not_valid_before_utc + CLOCK_SKEW
        return not self.predecessors or now - begins >= PROBATION

    @property
    def trusted_pem(self) -> bytes:
        """All who are trusted."""
        each = (self.own.certificate, *self.predecessors)
        return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in each)

    @property
    def entries(self) -> dict[str, bytes]:
        """What its Secret holds."""
        return {
            CERTIFICATE: self.own.certificate_pem,
            KEY: self.own.key_pem,
            TRUSTED: self.trusted_pem,
        }


def read(entries: Entries | None) -> IssuedCertificate | None:
    """The certificate and key in a Secret; None where they are missing, damaged or others'."""
    try:
        return IssuedCertificate.read(entries[CERTIFICATE], entries[KEY]) if entries else None
    except (KeyError, ValueError, TypeError):
        return None


def is_due(certificate: x509.Certificate, now: dt.datetime) -> bool:
    """Whether two thirds of a certificate's life are over."""
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return now >= begins + (ends - begins) * 2 / 3


def _certificates(entries: Entries) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(entries[TRUSTED])
    except (KeyError, ValueError):
        return []
