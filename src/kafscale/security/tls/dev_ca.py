"""Certificates for trying TLS: a CA, a server and users, as files.

Do not use this CA in production: its private key is a plain file.

Invariants: private keys are readable by their owner only, and existing files are not overwritten
unless `overwrites` is set.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from kafscale.errors import ConfigError
from kafscale.security.tls.issuer import CertificateIssuer, IssuedCertificate

CA_NAME: Final = "Kafscale development CA"
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
    ca = CertificateIssuer.create(now, days, authority_name)
    names = list(dict.fromkeys((*LOCAL_HOSTS, *hosts)))
    directory.mkdir(parents=True, exist_ok=True)
    _write(files.authority, ca.own.certificate_pem, _PUBLIC)
    _write(files.authority_key, ca.own.key_pem, _PRIVATE)
    _write(files.truststore, _truststore(ca.own.certificate), _PUBLIC)
    _write_credential(files.server, ca, ca.server(names[0], names))
    for user, credential in files.users.items():
        _write_credential(credential, ca, ca.client(user))
    return files


def _credential(directory: Path, name: str) -> Credential:
    return Credential(
        directory / f"{name}.crt", directory / f"{name}.key", directory / f"{name}.p12"
    )


def _write_credential(files: Credential, ca: CertificateIssuer, issued: IssuedCertificate) -> None:
    _write(files.certificate, issued.certificate_pem, _PUBLIC)
    _write(files.key, issued.key_pem, _PRIVATE)
    _write(files.keystore, _keystore(issued, ca.own.certificate), _PRIVATE)


def _keystore(issued: IssuedCertificate, ca: x509.Certificate) -> bytes:
    """A certificate and its key as PKCS#12, for Java."""
    return pkcs12.serialize_key_and_certificates(
        b"kafscale", issued.key, issued.certificate, [ca], _encryption()
    )


def _truststore(ca: x509.Certificate) -> bytes:
    """A CA certificate as a PKCS#12 truststore, for Java."""
    entry = pkcs12.PKCS12Certificate(ca, b"kafscale-ca")
    return pkcs12.serialize_java_truststore([entry], _encryption())


def _encryption() -> serialization.KeySerializationEncryption:
    return (
        serialization.PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(10_000)
        .key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC)
        .hmac_hash(hashes.SHA256())
        .build(PASSWORD.encode())
    )


def _write(path: Path, content: bytes, mode: int) -> None:
    """Replace a file; it has its final permissions before it has any content."""
    path.unlink(missing_ok=True)
    path.touch(mode, exist_ok=False)
    path.write_bytes(content)
