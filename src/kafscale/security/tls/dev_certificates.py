"""Certificates for trying TLS out, as files: an authority, a server, and the users that are named.

The laws: private keys can be read by their owner alone. What is there is not overwritten unless
that is asked for: somebody may trust it.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafscale.errors import ConfigError
from kafscale.security.tls.dev_ca import NAME, DevAuthority, Issued

LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
PASSWORD: Final = "changeit"  # noqa: S105 - Java wants some password; all of its own say this one.
"""Of the files in PKCS#12."""

_SERVER: Final = "server"
_PUBLIC: Final = 0o644
_PRIVATE: Final = 0o600


@dataclass(frozen=True)
class Credential:
    """The files of one who can show a certificate."""

    certificate: Path
    key: Path
    keystore: Path
    """Both of them, and the authority, as PKCS#12."""


@dataclass(frozen=True)
class DevCertificates:
    """All files."""

    authority: Path
    authority_key: Path
    truststore: Path
    """The authority as PKCS#12."""
    server: Credential
    users: Mapping[str, Credential]

    @classmethod
    def at(cls, directory: Path, users: Sequence[str]) -> "DevCertificates":
        """Where the files are in a directory."""
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


def make(
    directory: Path,
    *,
    hosts: Sequence[str] = (),
    users: Sequence[str] = (),
    now: dt.datetime,
    days: int,
    overwrites: bool = False,
    authority_name: str = NAME,
) -> DevCertificates:
    """Make all files, for a server on this machine that is reached by other names as well."""
    files = DevCertificates.at(directory, users)
    existing = [path for path in files if path.exists()]
    if existing and not overwrites:
        raise ConfigError(f"{existing[0]} exists; it is not overwritten unless you force it")
    if taken := {"ca", "truststore", _SERVER}.intersection(users):
        raise ConfigError(f"a user cannot be called {min(taken)}: files have that name already")
    authority = DevAuthority.create(now, days, authority_name)
    names = list(dict.fromkeys((*LOCAL_HOSTS, *hosts)))
    directory.mkdir(parents=True, exist_ok=True)
    _write(files.authority, authority.own.certificate_pem, _PUBLIC)
    _write(files.authority_key, authority.own.key_pem, _PRIVATE)
    _write(files.truststore, authority.truststore(PASSWORD), _PUBLIC)
    _write_credential(files.server, authority, authority.server(names[0], names))
    for user, credential in files.users.items():
        _write_credential(credential, authority, authority.client(user))
    return files


def _credential(directory: Path, name: str) -> Credential:
    return Credential(
        directory / f"{name}.crt", directory / f"{name}.key", directory / f"{name}.p12"
    )


def _write_credential(files: Credential, authority: DevAuthority, issued: Issued) -> None:
    _write(files.certificate, issued.certificate_pem, _PUBLIC)
    _write(files.key, issued.key_pem, _PRIVATE)
    _write(files.keystore, authority.keystore(issued, PASSWORD), _PRIVATE)


def _write(path: Path, content: bytes, mode: int) -> None:
    """Replace a file; nobody else can have opened it before its rights were right."""
    path.unlink(missing_ok=True)
    path.touch(mode, exist_ok=False)
    path.write_bytes(content)
