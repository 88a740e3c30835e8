"""`CertificateIssuer`: a certificate authority and the certificates that it issues.

    ca = CertificateIssuer.create(now, days=30, name="Test CA")
    server = ca.server("localhost", hosts)
    alice = ca.client("alice")

Certificates pass the strictest verifiers in use: OpenSSL, BoringSSL and Java. Keys are P-256, which
all of them support. A server certificate is valid as a client certificate too, because brokers and
members of etcd connect to each other.
"""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLOCK_SKEW: Final = dt.timedelta(minutes=5)
"""How far the clocks of clients may be behind."""

_SERVER_USAGES: Final = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
_CLIENT_USAGES: Final = (ExtendedKeyUsageOID.CLIENT_AUTH,)


class IssuedCertificate(NamedTuple):
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def read(cls, certificate_pem: bytes, key_pem: bytes) -> Self:
        """Load a certificate and its key; raises `ValueError` if they do not match."""
        certificate = x509.load_pem_x509_certificate(certificate_pem)
        key = serialization.load_pem_private_key(key_pem, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("not a key on an elliptic curve")  # noqa: TRY004 - invalid content.
        if certificate.public_key() != key.public_key():
            raise ValueError("the key does not match the certificate")
        return cls(certificate, key)

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


class CertificateIssuer:
    """Issues certificates that are valid for `days` days."""

    def __init__(self, own: IssuedCertificate, now: dt.datetime, days: int) -> None:
        self.own = own
        self._now = now
        self._days = days

    @classmethod
    def create(cls, now: dt.datetime, days: int, name: str) -> Self:
        """Create a CA with a new key and a self-signed certificate."""
        key = _new_key()
        builder = (
            _builder(_name(name), _name(name), key, now, days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
        )
        return cls(IssuedCertificate(builder.sign(key, hashes.SHA256()), key), now, days)

    def server(self, name: str, hosts: Sequence[str]) -> IssuedCertificate:
        """Issue a server certificate for these host names and addresses."""
        return self._issue(name, _SERVER_USAGES, hosts)

    def client(self, name: str, hosts: Sequence[str] = ()) -> IssuedCertificate:
        """Issue a client certificate; Kafka's default principal for it is `User:CN=name`."""
        return self._issue(name, _CLIENT_USAGES, hosts)

    def _issue(
        self, name: str, purposes: Sequence[x509.ObjectIdentifier], hosts: Sequence[str]
    ) -> IssuedCertificate:
        key, issuer = _new_key(), self.own
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key())
        builder = (
            _builder(_name(name), issuer.certificate.subject, key, self._now, self._days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(identifier, critical=False)
        )
        if hosts:
            alternative_names = x509.SubjectAlternativeName([*map(_host, hosts)])
            builder = builder.add_extension(alternative_names, critical=False)
        return IssuedCertificate(builder.sign(issuer.key, hashes.SHA256()), key)


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: dt.datetime,
    days: int,
) -> x509.CertificateBuilder:
    public_key = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
