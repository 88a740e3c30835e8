"""Loads certificate and key files into TLS contexts.

Errors are `ConfigError`s that name the setting, the reason and what to do. OpenSSL never prompts
for a password.
"""

import ssl
from math import inf
from pathlib import Path
from typing import Final

from kafscale.errors import ConfigError

_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
_KEY: Final = b"PRIVATE KEY-----"
_REVOCATION_LIST: Final = b"-----BEGIN X509 CRL-----"


def load_certificate(
    context: ssl.SSLContext, group: str, certificate: str, key: str, password: str = ""
) -> None:
    """Load a certificate and its key; `group` is the prefix of the settings, such as `tls`."""
    _check(f"{group}.certFile", certificate, _CERTIFICATE, "certificate")
    content = _check(f"{group}.keyFile", key, _KEY, "private key")
    try:
        # Without a password, OpenSSL would prompt for one on the terminal.
        context.load_cert_chain(certificate, key, password=password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(
                f"{group}.keyFile: {key} does not match the certificate in {certificate};"
                " use the key that the certificate was issued for"
            ) from None
        if b"ENCRYPTED" in content:
            raise ConfigError(
                f"{group}.keyFile: {key} is encrypted with another password; set the right"
                " password, or use a key that is not encrypted"
            ) from None
        raise ConfigError(
            f"{group}.certFile and {group}.keyFile: OpenSSL cannot load {certificate} and {key}"
            f" ({error.reason or error}); create them again"
        ) from None


def load_authorities(context: ssl.SSLContext, group: str, ca_file: str) -> None:
    """Trust the CA certificates in a file.

    An intermediate CA in the file is trusted without its root, as in Java.
    """
    _check(f"{group}.caFile", ca_file, _CERTIFICATE, "certificate")
    try:
        context.load_verify_locations(ca_file)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    except ssl.SSLError as error:
        raise ConfigError(
            f"{group}.caFile: OpenSSL cannot load {ca_file} ({error.reason or error});"
            " create it again"
        ) from None


def load_revocation_lists(context: ssl.SSLContext, group: str, crl_file: str) -> None:
    """Reject client certificates that these lists revoke, and all without a list of their CA."""
    _check(f"{group}.crlFile", crl_file, _REVOCATION_LIST, "certificate revocation list")
    try:
        context.load_verify_locations(crl_file)
    except ssl.SSLError as error:
        raise ConfigError(
            f"{group}.crlFile: OpenSSL cannot load {crl_file} ({error.reason or error});"
            " create it again"
        ) from None
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def expiration_s(path: str) -> float:
    """When the first certificate or the revocation list in a file expires, in seconds since 1970.

    0 if it cannot be read.
    """
    from cryptography import x509  # noqa: PLC0415 - slow to import, and only used with TLS.

    try:
        content = Path(path).read_bytes()
        if _REVOCATION_LIST in content:
            expiry = x509.load_pem_x509_crl(content).next_update_utc
            return inf if expiry is None else expiry.timestamp()
        return x509.load_pem_x509_certificate(content).not_valid_after_utc.timestamp()
    except (OSError, ValueError):
        return 0


def load_client_files(
    context: ssl.SSLContext, group: str, ca_file: str, certificate: str, key: str
) -> None:
    """Load the files of a client: the trusted CAs, by default the system's, and a certificate."""
    if ca_file:
        load_authorities(context, group, ca_file)
    else:
        context.load_default_certs()
    if certificate:
        load_certificate(context, group, certificate, key)


def read_client_files(
    ca_file: str, certificate: str, key: str
) -> tuple[bytes | None, bytes | None, bytes | None]:
    """The CAs, the key and the certificate of a client, in the order of gRPC's credentials."""
    ca_bundle = Path(ca_file).read_bytes() if ca_file else _system_ca_bundle()
    if not certificate:
        return ca_bundle, None, None
    return ca_bundle, Path(key).read_bytes(), Path(certificate).read_bytes()


def _system_ca_bundle() -> bytes | None:
    """The system's CA certificates, which gRPC does not load; None if not found."""
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
            f"{setting}: cannot read {path} ({error.strerror}); use a file that this process may"
            " read"
        ) from None
    if mark not in content:
        raise ConfigError(
            f"{setting}: {path} contains no {what} in PEM format; convert it with openssl"
        )
    return content
