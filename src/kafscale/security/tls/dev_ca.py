"""`DevCa`: a certificate authority for trying TLS, and the files that it creates.

    ca = DevCa.create(now, days=30)
    server = ca.server("localhost", hosts)
    alice = ca.client("alice")

Certificates pass the strictest verifiers in use: OpenSSL, BoringSSL and Java. Keys are P-256, which
all of them support. A server certificate is valid as a client certificate too, because brokers
connect to each other. Do not use this CA in production: its private key is a plain file.

`create_dev_certificates` writes files for a CA, a server and users. Invariants: private keys are
readable by their owner only, and existing files are not overwritten unless `overwrites` is set.
"""

import datetime as dt
import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kafscale.errors import ConfigError

CA_NAME: Final = "Kafscale development CA"
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


class DevCa:
    """Issues certificates that are valid for `days` days."""

    def __init__(self, own: IssuedCertificate, now: dt.datetime, days: int) -> None:
        self.own = own
        self._now = now
        self._days = days

    @classmethod
    def create(cls, now: dt.datetime, days: int, name: str = CA_NAME) -> Self:
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
        return self._issue(name, _SERVER_USAGES, x509.SubjectAlternativeName([*map(_host, hosts)]))

    def client(self, name: str) -> IssuedCertificate:
        """Issue a client certificate; Kafka's default principal for it is `User:CN=name`."""
        return self._issue(name, _CLIENT_USAGES)

    def keystore(self, issued: IssuedCertificate, password: str) -> bytes:
        """Return a certificate and its key as PKCS#12, for Java."""
        return pkcs12.serialize_key_and_certificates(
            b"kafscale",
            issued.key,
            issued.certificate,
            [self.own.certificate],
            _encryption(password),
        )

    def truststore(self, password: str) -> bytes:
        """Return the CA certificate as a PKCS#12 truststore, for Java."""
        entry = pkcs12.PKCS12Certificate(self.own.certificate, b"kafscale-ca")
        return pkcs12.serialize_java_truststore([entry], _encryption(password))

    def _issue(
        self,
        name: str,
        purposes: Sequence[x509.ObjectIdentifier],
        hosts: x509.SubjectAlternativeName | None = None,
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
        if hosts is not None:
            builder = builder.add_extension(hosts, critical=False)
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


def _encryption(password: str) -> serialization.KeySerializationEncryption:
    return (
        serialization.PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(10_000)
        .key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC)
        .hmac_hash(hashes.SHA256())
        .build(password.encode())
    )


LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
PASSWORD: Final = "changeit"  # noqa: S105 - the usual password of Java keystores.
"""The password of the PKCS#12 files."""

_SERVER: Final = "server"
_PUBLIC: Final = 0o644
_PRIVATE: Final = 0o600


@dataclass(frozen=True)
class Credential:
    """The files of one certificate."""

    certificate: Path
    key: Path
    keystore: Path
    """Certificate, key and CA certificate as PKCS#12."""


@dataclass(frozen=True)
class DevCertificates:
    """The paths of all files."""

    authority: Path
    authority_key: Path
    truststore: Path
    """The CA certificate as PKCS#12."""
    server: Credential
    users: Mapping[str, Credential]

    @classmethod
    def at(cls, directory: Path, users: Sequence[str]) -> "DevCertificates":
        """The paths of the files in a directory."""
        return cls(
            directory / "ca.crt",
            directory / "ca.key",
            directory / "truststore.p12",
            _credential(directory, _SERVER),
            {user: _credential(directory, user) for user in users},
        )

    def __iter__(self) -> Iterator[Path]:
        yield from (self.authority, self.authority_key, self.truststore)
        for each in (self.server, *self.users.values()):
            yield from (each.certificate, each.key, each.keystore)


def create_dev_certificates(
    directory: Path,
    *,
    hosts: Sequence[str] = (),
    users: Sequence[str] = (),
    now: dt.datetime,
    days: int,
    overwrites: bool = False,
    authority_name: str = CA_NAME,
) -> DevCertificates:
    """Write all files; the server certificate is for this machine and the other `hosts`."""
    files = DevCertificates.at(directory, users)
    existing = [path for path in files if path.exists()]
    if existing and not overwrites:
        raise ConfigError(f"{existing[0]} exists; it is not overwritten unless you force it")
    if reserved := {"ca", "truststore", _SERVER}.intersection(users):
        raise ConfigError(f"a user cannot be named {min(reserved)}: that file name is reserved")
    ca = DevCa.create(now, days, authority_name)
    names = list(dict.fromkeys((*LOCAL_HOSTS, *hosts)))
    directory.mkdir(parents=True, exist_ok=True)
    _write(files.authority, ca.own.certificate_pem, _PUBLIC)
    _write(files.authority_key, ca.own.key_pem, _PRIVATE)
    _write(files.truststore, ca.truststore(PASSWORD), _PUBLIC)
    _write_credential(files.server, ca, ca.server(names[0], names))
    for user, credential in files.users.items():
        _write_credential(credential, ca, ca.client(user))
    return files


def _credential(directory: Path, name: str) -> Credential:
    return Credential(
        directory / f"{name}.crt", directory / f"{name}.key", directory / f"{name}.p12"
    )


def _write_credential(files: Credential, ca: DevCa, issued: IssuedCertificate) -> None:
    _write(files.certificate, issued.certificate_pem, _PUBLIC)
    _write(files.key, issued.key_pem, _PRIVATE)
    _write(files.keystore, ca.keystore(issued, PASSWORD), _PRIVATE)


def _write(path: Path, content: bytes, mode: int) -> None:
    """Replace a file; it has its final permissions before it has any content."""
    path.unlink(missing_ok=True)
    path.touch(mode, exist_ok=False)
    path.write_bytes(content)
