"""Certificates of an authority that exists only for a test: for a server, and for its clients."""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Certificates:
    """Files in PEM."""

    authority: Path
    server_certificate: Path
    server_key: Path
    client_certificate: Path
    client_key: Path


def make_certificates(directory: Path) -> Certificates:
    """New ones, for servers on this machine."""
    directory.mkdir(parents=True, exist_ok=True)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("authority of a test")
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    authority = (
        _builder(authority_name, authority_name, authority_key)
        .add_extension(constraints, critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    hosts = x509.SubjectAlternativeName(
        [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    )

    def issue(name: str) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(_name(name), authority_name, key)
            .add_extension(hosts, critical=False)
            .sign(authority_key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return (
            _file(directory / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM)),
            _file(directory / f"{name}.key", private),
        )

    place = directory / "authority.crt"
    return Certificates(
        _file(place, authority.public_bytes(serialization.Encoding.PEM)),
        *issue("server"),
        *issue("client"),
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
    )


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _file(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
