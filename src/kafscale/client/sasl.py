"""Authenticates with a broker by SASL: SaslHandshake, then SaslAuthenticate (KIP-152).

Errors name the settings to check. `kafscale.security.sasl.client` creates the tokens; the
connection decides when to reauthenticate.
"""

from collections.abc import Awaitable
from random import Random
from typing import Protocol

from kafscale.client.errors import check
from kafscale.client.security import OAUTH, Security
from kafscale.errors import AuthenticationError, UnsupportedMechanismError
from kafscale.protocol.api import Api, Request, Response
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.sasl_authenticate import (
    SASL_AUTHENTICATE,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafscale.protocol.messages.sasl_handshake import (
    SASL_HANDSHAKE,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)


class SendRequest(Protocol):
    """Sends a request and waits for the response, while no other request is sent."""

    def __call__(self, api: Api[Request, Response], request: Request, /) -> Awaitable[Response]: ...


async def authenticate(ask: SendRequest, broker: str, security: Security, random: Random) -> int:
    """Authenticate; return the session lifetime in milliseconds, or 0 if it is unlimited."""
    # Slow to import.
    from kafscale.security.sasl.client import create_client  # noqa: PLC0415

    handshake = await ask(SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=security.mechanism))
    _check_handshake(broker, security, handshake)
    client = create_client(
        security.mechanism, security.username, security.password, security.token(), random
    )
    token: bytes | None = client.initial_response()
    lifetime_ms = 0
    while token is not None:
        response = await ask(SASL_AUTHENTICATE, SaslAuthenticateRequest(token=token))
        _check_authenticated(broker, security, response)
        try:
            token = client.evaluate_challenge(response.token)
        except AuthenticationError as error:
            raise AuthenticationError(f"{broker} failed to authenticate itself: {error}") from None
        lifetime_ms = response.session_lifetime_ms
    return lifetime_ms


def _check_handshake(broker: str, security: Security, handshake: SaslHandshakeResponse) -> None:
    code = ErrorCode.of(handshake.error_code)
    if code is ErrorCode.UNSUPPORTED_SASL_MECHANISM and handshake.mechanisms:
        raise UnsupportedMechanismError(
            f"{broker} does not support {security.mechanism}, only"
            f" {', '.join(handshake.mechanisms)};"
            " set client.saslMechanism (KAFSCALE_CLIENT_SASL_MECHANISM)"
        )
    if code in {ErrorCode.UNSUPPORTED_SASL_MECHANISM, ErrorCode.ILLEGAL_SASL_STATE}:
        protocol = "SSL" if security.encrypts else "PLAINTEXT"
        raise UnsupportedMechanismError(
            f"{broker} does not use SASL on this port; set client.securityProtocol"
            f" (KAFSCALE_CLIENT_SECURITY_PROTOCOL) to {protocol}"
        )
    check(broker, code)


def _check_authenticated(
    broker: str, security: Security, response: SaslAuthenticateResponse
) -> None:
    if response.error_code == ErrorCode.NONE:
        return
    is_token = security.mechanism == OAUTH
    settings = "client.tokenFile" if is_token else "client.username and client.password"
    reason = response.error_message or ErrorCode.of(response.error_code).message
    raise AuthenticationError(
        f"{broker} rejected {security.user_description}: {reason}; check {settings}"
    )
