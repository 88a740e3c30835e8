"""Why a broker cannot be talked to: what the network and TLS tell, in words that say what to do.

The law: what may be over soon is an `UnreachableError`, which is worth another try; a certificate
that one side does not accept is an `AuthenticationError`, which is not.
"""

import socket
import ssl
from typing import Final

from kafscale.client.errors import UnreachableError
from kafscale.client.security import Security
from kafscale.errors import AuthenticationError, KafscaleError
from kafscale.net.host_port import Address

_PROTOCOL: Final = "client.securityProtocol (KAFSCALE_CLIENT_SECURITY_PROTOCOL)"
_WRONG_NAME: Final = frozenset((62, 64))
"""What OpenSSL calls X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""
_WRONG_TIME: Final = frozenset((9, 10))
"""X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED."""


def not_connected(
    address: Address, security: Security, error: OSError, limit_seconds: float
) -> KafscaleError:
    """Why there is no connection."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return AuthenticationError(_why_not_trusted(address, error))
    if isinstance(error, ssl.SSLError) and _is_alert(error):
        return AuthenticationError(_why_not_accepted(address, security, error))
    if security.encrypts and isinstance(error, ssl.SSLError | ConnectionResetError):
        plain = security.protocol.replace("SSL", "PLAINTEXT")
        # Many servers close the connection instead of telling what they do not like.
        certificate = "" if isinstance(error, ssl.SSLError) else f"; {_remedy(security)}"
        return UnreachableError(
            f"{address} does not go on with TLS ({_reason(error)}); if it does not speak it, set"
            f" {_PROTOCOL} to {plain}{certificate}"
        )
    if isinstance(error, socket.gaierror):
        return UnreachableError(
            f"the host {address.host} cannot be found; name a broker with --bootstrap-server"
        )
    if isinstance(error, TimeoutError):
        return UnreachableError(
            f"{address} does not answer within {limit_seconds:.0f} s;"
            " is the address right, and does a firewall let it through?"
        )
    reason = "connection refused" if isinstance(error, ConnectionRefusedError) else str(error)
    return UnreachableError(
        f"no broker listens on {address} ({reason});"
        " is one running? start one with: kafscale broker"
    )


def lost(
    address: Address, security: Security, error: Exception | None, answer_count: int
) -> KafscaleError:
    """Why a connection has ended, after so many answers."""
    if isinstance(error, ssl.SSLError) and _is_alert(error):
        # With TLS 1.3 a server looks at our certificate when we believe to be done.
        return AuthenticationError(_why_not_accepted(address, security, error))
    reason = f" ({_reason(error)})" if error else ""
    return UnreachableError(
        f"the broker at {address} closed the connection{reason}{_hint(security, answer_count)}"
    )


def not_kafka(
    address: Address, security: Security, error: Exception, answer_count: int
) -> KafscaleError:
    """Why the other side is left."""
    hint = _hint(security, answer_count)
    return UnreachableError(f"{address} does not speak Kafka: {error}{hint}")


def _hint(security: Security, answer_count: int) -> str:
    """What may be wrong with somebody who leaves so early."""
    if answer_count == 0 and security.encrypts:
        return f"; {_remedy(security)}"
    if answer_count == 0:
        encrypted = security.protocol.replace("PLAINTEXT", "SSL")
        return f"; if it speaks TLS, set {_PROTOCOL} to {encrypted}"
    if answer_count == 1 and not security.authenticates:
        # Before somebody has logged in, ApiVersions is all that is answered.
        return f"; if one has to log in there, set {_PROTOCOL} to SASL_{security.protocol}"
    return ""


def _why_not_trusted(address: Address, error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in _WRONG_NAME:
        return (
            f"the certificate of the broker at {address} is for another name:"
            f" {error.verify_message}; ask it by the name in its certificate, or set"
            " client.tls.checkHost to false where any broker of its authority will do"
        )
    if error.verify_code in _WRONG_TIME:
        return (
            f"the certificate of the broker at {address} is not valid now:"
            f" {error.verify_message}; renew it, or set the clock of this machine"
        )
    return (
        f"the certificate of the broker at {address} is not trusted: {error.verify_message};"
        " set client.tls.caFile (KAFSCALE_CLIENT_TLS_CA_FILE) to the authority that issued it"
    )


def _why_not_accepted(address: Address, security: Security, error: ssl.SSLError) -> str:
    return f"the broker at {address} does not accept us: {_reason(error)}; {_remedy(security)}"


def _remedy(security: Security) -> str:
    """What to do about a server that may not like our certificate."""
    if ours := security.tls.cert_file:
        return f"look at who issued {ours} (client.tls.certFile), and for how long it is valid"
    return "if it asks for a certificate, set client.tls.certFile (KAFSCALE_CLIENT_TLS_CERT_FILE)"


def _is_alert(error: ssl.SSLError) -> bool:
    """Whether the other side has told what it does not like."""
    return "ALERT" in (error.reason or "")


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return str(error) or "connection reset"
