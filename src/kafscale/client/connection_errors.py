"""Translates network and TLS errors to errors that say what to do.

An `UnreachableError` may be retried. A certificate that one side rejects is an
`AuthenticationError`, which is not retried.
"""

import socket
import ssl
from typing import Final

from kafscale.client.errors import UnreachableError
from kafscale.client.security import Security
from kafscale.errors import AuthenticationError, KafscaleError
from kafscale.net.address import Address

_PROTOCOL: Final = "client.securityProtocol (KAFSCALE_CLIENT_SECURITY_PROTOCOL)"
_WRONG_NAME: Final = frozenset((62, 64))
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""
_WRONG_TIME: Final = frozenset((9, 10))
"""X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED."""


def connect_error(
    address: Address, security: Security, error: OSError, limit_seconds: float
) -> KafscaleError:
    """The error for a failed attempt to connect."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return AuthenticationError(_untrusted_server_message(address, error))
    if isinstance(error, ssl.SSLError) and _is_alert(error):
        return AuthenticationError(_rejected_client_message(address, security, error))
    if security.encrypts and isinstance(error, ssl.SSLError | ConnectionResetError):
        plain = security.protocol.replace("SSL", "PLAINTEXT")
        # Many servers close the connection instead of sending an alert.
        certificate = "" if isinstance(error, ssl.SSLError) else f"; {_certificate_hint(security)}"
        return UnreachableError(
            f"the TLS handshake with {address} failed ({_reason(error)}); if it does not use TLS,"
            f" set {_PROTOCOL} to {plain}{certificate}"
        )
    if isinstance(error, socket.gaierror):
        return UnreachableError(
            f"cannot resolve the host {address.host}; name a broker with --bootstrap-server"
        )
    if isinstance(error, TimeoutError):
        return UnreachableError(
            f"timed out connecting to {address} after {limit_seconds:.0f} s;"
            " check the address and firewalls"
        )
    reason = "connection refused" if isinstance(error, ConnectionRefusedError) else str(error)
    return UnreachableError(
        f"no broker listens on {address} ({reason});"
        " is one running? start one with: kafscale broker"
    )


def disconnect_error(
    address: Address, security: Security, error: Exception | None, response_count: int
) -> KafscaleError:
    """The error for a lost connection, given the number of responses received before."""
    if isinstance(error, ssl.SSLError) and _is_alert(error):
        # With TLS 1.3, a server checks the client certificate after the client has connected.
        return AuthenticationError(_rejected_client_message(address, security, error))
    reason = f" ({_reason(error)})" if error else ""
    hint = _early_close_hint(security, response_count)
    return UnreachableError(f"the broker at {address} closed the connection{reason}{hint}")


def not_kafka_error(
    address: Address, security: Security, error: Exception, response_count: int
) -> KafscaleError:
    """The error for a server that does not use the Kafka protocol."""
    hint = _early_close_hint(security, response_count)
    return UnreachableError(f"{address} does not use the Kafka protocol: {error}{hint}")


def _early_close_hint(security: Security, response_count: int) -> str:
    """The likely cause if a server closes the connection after few responses."""
    if response_count == 0 and security.encrypts:
        return f"; {_certificate_hint(security)}"
    if response_count == 0:
        encrypted = security.protocol.replace("PLAINTEXT", "SSL")
        return f"; if it uses TLS, set {_PROTOCOL} to {encrypted}"
    if response_count == 1 and not security.authenticates:
        # Before authentication, brokers only respond to ApiVersions.
        return f"; if it requires authentication, set {_PROTOCOL} to SASL_{security.protocol}"
    return ""


def _untrusted_server_message(address: Address, error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in _WRONG_NAME:
        return (
            f"the certificate of the broker at {address} is for another host:"
            f" {error.verify_message}; connect by the host name in the certificate, or set"
            " client.tls.verifyHostname to false to accept any broker of this CA"
        )
    if error.verify_code in _WRONG_TIME:
        return (
            f"the certificate of the broker at {address} is not valid now:"
            f" {error.verify_message}; renew it, or correct the clock of this machine"
        )
    return (
        f"the certificate of the broker at {address} is not trusted: {error.verify_message};"
        " set client.tls.caFile (KAFSCALE_CLIENT_TLS_CA_FILE) to the CA that issued it"
    )


def _rejected_client_message(address: Address, security: Security, error: ssl.SSLError) -> str:
    hint = _certificate_hint(security)
    return f"the broker at {address} rejected the client: {_reason(error)}; {hint}"


def _certificate_hint(security: Security) -> str:
    """What to do about a server that may have rejected the client certificate."""
    if cert_file := security.tls.cert_file:
        return f"check the issuer and the validity of {cert_file} (client.tls.certFile)"
    return (
        "if it requires a client certificate, set client.tls.certFile"
        " (KAFSCALE_CLIENT_TLS_CERT_FILE)"
    )


def _is_alert(error: ssl.SSLError) -> bool:
    """Whether the server sent a TLS alert."""
    return "ALERT" in (error.reason or "")


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return str(error) or "connection reset"
