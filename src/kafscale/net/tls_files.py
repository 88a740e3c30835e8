"""Certificates and keys in the files that settings name, taken into a context of TLS.

The law: a file that is of no use is told by the setting that names it, with the reason and what to
do, as a `ConfigError`; nobody is ever asked for a password. What they are used for is left to the
rooms above.
"""

import ssl
from pathlib import Path
from typing import Final

from kafscale.errors import ConfigError

_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
_KEY: Final = b"PRIVATE KEY-----"


def show(
    context: ssl.SSLContext, group: str, certificate: str, key: str, password: str = ""
) -> None:
    """Have a context show a certificate; `group` is where its settings are, such as `tls`."""
    _check(f"{group}.certFile", certificate, _CERTIFICATE, "certificate")
    content = _check(f"{group}.keyFile", key, _KEY, "private key")
    try:
        # Without a password in its hands, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(certificate, key, password=password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(
                f"{group}.keyFile names {key}, which does not belong to the certificate in"
                f" {certificate}; name the one that the certificate was issued for"
            ) from None
        if b"ENCRYPTED" in content:
            raise ConfigError(
                f"{group}.keyFile names {key}, which is encrypted with another password than the"
                " one that is set; set the right one, or name a key that is not encrypted"
            ) from None
        raise ConfigError(
            f"{group}.certFile and {group}.keyFile name {certificate} and {key}, which OpenSSL"
            f" cannot use ({error.reason or error}); have them made anew"
        ) from None


def trust(context: ssl.SSLContext, group: str, authorities: str) -> None:
    """Have a context trust those to whom authorities have given certificates.

    An authority that is named is trusted though another one may have certified it, as in Java.
    """
    _check(f"{group}.caFile", authorities, _CERTIFICATE, "certificate")
    try:
        context.load_verify_locations(authorities)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    except ssl.SSLError as error:
        raise ConfigError(
            f"{group}.caFile names {authorities}, which OpenSSL cannot use"
            f" ({error.reason or error}); have it made anew"
        ) from None


def system_authorities() -> bytes | None:
    """Those whom the operating system trusts, for libraries that do not look; None for unknown."""
    system = ssl.get_default_verify_paths()
    for path in (system.cafile, f"{system.capath}/ca-certificates.crt"):
        if path and Path(path).is_file():
            return Path(path).read_bytes()
    return None


def _check(setting: str, path: str, mark: bytes, what: str) -> bytes:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{setting} names {path}, which cannot be read ({error.strerror}); name a file that"
            " this process may read"
        ) from None
    if mark not in content:
        raise ConfigError(
            f"{setting} names {path}, which holds no {what} in PEM; convert it with openssl"
        )
    return content
