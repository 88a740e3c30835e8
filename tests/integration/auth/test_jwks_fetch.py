"""JWKS are fetched over HTTP within limits, and verify tokens."""

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import SystemRandom

import pytest

from kafscale.config.sections.security import Sasl
from kafscale.errors import ConfigError, OperatingError
from kafscale.security.jwt.jwks import CONTENT_BYTES_MAX, TIME_MS_MAX, fetch
from kafscale.security.sasl.client import OAuthBearerSaslClient
from kafscale.security.sasl.mechanisms import Mechanisms
from unit.security.signing import NOW_MS, jwk, jwks, private_key, token


class Issuer:
    """An HTTP server that publishes keys."""

    def __init__(self, content):
        self.content = content
        self.status = 200
        self.headers = {}
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(issuer.status)
                for name, value in issuer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(issuer.content)

            def log_message(self, *_args):
                """Do not log requests."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/keys"

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def issuer():
    issuer = Issuer(b"content")
    yield issuer
    issuer.close()


def clock():
    return NOW_MS


def test_fetch_returns_the_content(issuer):
    assert fetch(issuer.url, clock) == b"content"
    issuer.content = bytes(CONTENT_BYTES_MAX)
    assert fetch(issuer.url, clock) == issuer.content


def test_fetch_rejects_large_responses(issuer):
    issuer.content = bytes(CONTENT_BYTES_MAX + 1)
    with pytest.raises(OperatingError, match="larger than"):
        fetch(issuer.url, clock)


def test_fetch_rejects_slow_responses(issuer):
    times_ms = iter((NOW_MS, NOW_MS + TIME_MS_MAX + 1))
    with pytest.raises(OperatingError, match="takes longer than"):
        fetch(issuer.url, lambda: next(times_ms))


@pytest.mark.parametrize("status", [304, 404, 500])
def test_fetch_reports_http_errors(issuer, status):
    issuer.status = status
    with pytest.raises(OperatingError, match=f"the response is {status}"):
        fetch(issuer.url, clock)


@pytest.mark.parametrize("target", ["/elsewhere", "file:///etc/passwd"])
def test_fetch_follows_no_redirect(issuer, target):
    issuer.status, issuer.headers = 302, {"Location": target}
    with pytest.raises(OperatingError, match="the response is 302"):
        fetch(issuer.url, clock)


def test_fetch_reports_connection_errors(issuer):
    issuer.close()
    with pytest.raises(OperatingError, match="refused"):
        fetch(issuer.url, clock)


def authenticate(mechanisms, key, name):
    """The principal of a token that is signed with that key."""
    client = OAuthBearerSaslClient(token(key, "ES256", headers={"kid": name}))
    return (
        mechanisms.create_server("OAUTHBEARER")
        .evaluate_response(client.initial_response())
        .principal
    )


def settings(issuer):
    return Sasl(
        enabled_mechanisms=("OAUTHBEARER",), oauth_jwks_url=issuer.url, oauth_jwks_refresh_ms=1000
    )


def test_rotated_keys_are_used_without_restart(issuer):
    old, new = private_key("P-256", "old"), private_key("P-256", "new")

    async def body():
        issuer.content = jwks(jwk(old, kid="old"))
        mechanisms = Mechanisms(settings(issuer), _none, clock=clock, random=SystemRandom())
        await mechanisms.start()
        assert authenticate(mechanisms, old, "old")
        assert not authenticate(mechanisms, new, "new")
        issuer.content = jwks(jwk(new, kid="new"))
        async with asyncio.timeout(15):
            while not authenticate(mechanisms, new, "new"):  # noqa: ASYNC110 - it is what clients do.
                await asyncio.sleep(0.05)
        assert not authenticate(mechanisms, old, "old")
        await mechanisms.close()

    asyncio.run(body())


def test_start_fails_without_jwks(issuer):
    issuer.status = 503
    mechanisms = Mechanisms(settings(issuer), _none, clock=clock, random=SystemRandom())
    with pytest.raises(ConfigError, match=r"sasl\.oauthJwksUrl: .* 503 Service Unavailable"):
        asyncio.run(mechanisms.start())


def _none(_user, _mechanism):
    return None
