"""Showing a broker who one is, by SASL: the mechanism first, then its tokens (KIP-152).

The law: what goes wrong is said in terms of the settings that put it right. How tokens are made is
left to the initiations of `kafscale.security`; when to log in again, to the connection.
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


class Ask(Protocol):
    """Asks a broker, while nobody else does."""

    def __call__(self, api: Api[Request, Response], request: Request, /) -> Awaitable[Response]: ...


async def log_in(ask: Ask, broker: str, security: Security, random: Random) -> int:
    """Log in; how long the session lasts, in milliseconds, or 0 if it does not end."""
    from kafscale.security.sasl.client import create_client  # noqa: PLC0415 - slow to load, rarely needed.

    offer = await ask(SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=security.mechanism))
    _check_offered(broker, security, offer)
    login = create_client(
        security.mechanism, security.username, security.password, security.token(), random
    )
    token: bytes | None = login.initial_response()
    lifetime_ms = 0
    while token is not None:
        answer = await ask(SASL_AUTHENTICATE, SaslAuthenticateRequest(token=token))
        _check_convinced(broker, security, answer)
        try:
            token = login.evaluate_challenge(answer.token)
        except AuthenticationError as error:
            raise AuthenticationError(f"{broker} is not to be trusted: {error}") from None
        lifetime_ms = answer.session_lifetime_ms
    return lifetime_ms


def _check_offered(broker: str, security: Security, offer: SaslHandshakeResponse) -> None:
    code = ErrorCode.of(offer.error_code)
    if code is ErrorCode.UNSUPPORTED_SASL_MECHANISM and offer.mechanisms:
        raise UnsupportedMechanismError(
            f"{broker} does not offer {security.mechanism}, but {', '.join(offer.mechanisms)};"
            " set client.saslMechanism (KAFSCALE_CLIENT_SASL_MECHANISM)"
        )
    if code in {ErrorCode.UNSUPPORTED_SASL_MECHANISM, ErrorCode.ILLEGAL_SASL_STATE}:
        protocol = "SSL" if security.encrypts else "PLAINTEXT"
        raise UnsupportedMechanismError(
            f"{broker} lets nobody log in on this port; set client.securityProtocol"
            f" (KAFSCALE_CLIENT_SECURITY_PROTOCOL) to {protocol}"
        )
    check(broker, code)


def _check_convinced(broker: str, security: Security, answer: SaslAuthenticateResponse) -> None:
    if answer.error_code == ErrorCode.NONE:
        return
    what = "client.tokenFile" if security.mechanism == OAUTH else "client.username and .password"
    reason = answer.error_message or ErrorCode.of(answer.error_code).message
    raise AuthenticationError(f"{broker} does not let {security.who} in: {reason}; look at {what}")
