"""`DevAuthority`: an authority that issues certificates for trying TLS out. In memory.

    authority = DevAuthority.create(now, days=30)
    server = authority.server("localhost", hosts)
    alice = authority.client("alice")

The law: what it issues holds up against the strictest of those who check: OpenSSL, BoringSSL and
Java. Keys are of P-256, which all of them know. A server may show its certificate as a client as
well, because brokers talk to each other. Where keys are kept is left to the caller; production
wants an authority that keeps its own in a safer place.
"""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NAME: Final = "Kafscale development CA"
CLOCK_SKEW: Final = dt.timedelta(minutes=5)
"""How far behind the clocks of others may be."""

_SERVER: Final = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
_CLIENT: Final = (ExtendedKeyUsageOID.CLIENT_AUTH,)


class Issued(NamedTuple):
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def read(cls, certificate_pem: bytes, key_pem: bytes) -> Self:
        """What was issued earlier; raises `ValueError` where the two do not belong together."""
        certificate = x509.load_pem_x509_certificate(certificate_pem)
        key = serialization.load_pem_private_key(key_pem, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("not a key on an elliptic curve")  # noqa: TRY004 - of the content.
        if certificate.public_key() != key.public_key():
            raise ValueError("the key is not that of the certificate")
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


class DevAuthority:
    """Issues certificates that are valid for some days."""

    def __init__(self, own: Issued, now: dt.datetime, days: int) -> None:
        self.own = own
        self._now = now
        self._days = days

    @classmethod
    def create(cls, now: dt.datetime, days: int, name: str = NAME) -> Self:
        """A new one, whom nobody trusts yet."""
        key = _new_key()
        builder = (
            _builder(_name(name), _name(name), key, now, days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
        )
        return cls(Issued(builder.sign(key, hashes.SHA256()), key), now, days)

    def server(self, name: str, hosts: Sequence[str]) -> Issued:
        """For a server that is reached by any of the host names and addresses."""
        return self._issue(name, _SERVER, x509.SubjectAlternativeName([*map(_host, hosts)]))

    def client(self, name: str) -> Issued:
        """For somebody whom Kafka will know as `User:CN=name`."""
        return self._issue(name, _CLIENT)

    def keystore(self, issued: Issued, password: str) -> bytes:
        """A certificate and its key as PKCS#12, for Java."""
        return pkcs12.serialize_key_and_certificates(
            b"kafscale",
            issued.key,
            issued.certificate,
            [self.own.certificate],
            _encryption(password),
        )

    def truststore(self, password: str) -> bytes:
        """This authority as PKCS#12, for Java to trust."""
        entry = pkcs12.PKCS12Certificate(self.own.certificate, b"kafscale-ca")
        return pkcs12.serialize_java_truststore([entry], _encryption(password))

    def _issue(
        self,
        name: str,
        purposes: Sequence[x509.ObjectIdentifier],
        hosts: x509.SubjectAlternativeName | None = None,
    ) -> Issued:
        key, issuer = _new_key(), self.own
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key())
        builder = (
            _builder(_name(name), issuer.certificate.subject, key, self._now, self._days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(identifier, critical=False)
        )
        if hosts is not None:
            builder = builder.add_extension(hosts, critical=False)
        return Issued(builder.sign(issuer.key, hashes.SHA256()), key)


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


def _encryption(password: str) -> serialization.KeySerializationEncryption:
    return (
        serialization.PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(10_000)
        .key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC)
        .hmac_hash(hashes.SHA256())
        .build(password.encode())
    )
