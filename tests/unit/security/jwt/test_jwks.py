"""`Jwks`: keys are loaded at start and kept current, from a file and a URL."""

import asyncio
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from doubles import virtual_time
from doubles.virtual_time import START_MS, clock_ms
from kafscale.config.sections.security import Sasl
from kafscale.errors import ConfigError, OperatingError
from kafscale.security.jwt.jwks import FETCH_INTERVAL_MS_MIN, RETRY_MS, Jwks
from unit.security.signing import jwk, jwks, private_key

OLD, NEW = private_key("P-256", "old"), private_key("P-256", "new")
HOUR_MS = 3_600_000


class Issuer:
    """Serves a JWKS and records the requests."""

    def __init__(self):
        self.keys = {"old": OLD}
        self.fault = None
        self.asked_ms = []

    def __call__(self, url, _clock):
        assert url == "https://issuer/keys"
        self.asked_ms.append(clock_ms() - START_MS)
        if self.fault is not None:
            raise self.fault
        return jwks(*(jwk(key, kid=name) for name, key in self.keys.items()))


def run(body, **settings):
    """Run with keys from an issuer, in simulated time."""

    async def scenario(_random):
        issuer = Issuer()
        chosen = Sasl(oauth_jwks_url="https://issuer/keys", **settings)
        keys = Jwks(chosen, clock_ms, issuer)
        await keys.start()
        try:
            return await body(issuer, keys)
        finally:
            await keys.close()

    return virtual_time.run(scenario, seed=0)


def has(keys, name):
    return bool(keys.find(name, "ES256"))


def test_keys_are_fetched_at_start_and_hourly():
    async def body(issuer, keys):
        assert has(keys, "old")
        await asyncio.sleep(2.5 * 3600)
        return issuer.asked_ms

    assert run(body) == [0, HOUR_MS, 2 * HOUR_MS]


def test_refresh_interval_may_be_below_the_fetch_minimum():
    async def body(issuer, _keys):
        await asyncio.sleep(3.5)
        return issuer.asked_ms

    assert run(body, oauth_jwks_refresh_ms=1000) == [0, 1000, 2000, 3000]


def test_unknown_key_triggers_a_fetch():
    async def body(issuer, keys):
        await asyncio.sleep(100)
        issuer.keys = {"new": NEW}
        assert not has(keys, "new")
        await asyncio.sleep(0.001)
        assert has(keys, "new")
        await asyncio.sleep(1000)
        return issuer.asked_ms

    assert run(body) == [0, 100_000]


def test_unknown_keys_cause_a_bounded_number_of_fetches():
    async def body(issuer, keys):
        for name in range(1000):
            assert not has(keys, str(name))
            await asyncio.sleep(0.1)
        return issuer.asked_ms

    asked_ms = run(body)
    gaps_ms = [after - before for before, after in pairwise(asked_ms)]
    assert 9 <= len(gaps_ms) <= 10
    assert min(gaps_ms) >= FETCH_INTERVAL_MS_MIN


@pytest.mark.parametrize(
    "fault", [OperatingError("the response is 500"), RuntimeError("a fault of ours")]
)
def test_failed_fetch_keeps_the_keys_and_is_retried(fault):
    async def body(issuer, keys):
        issuer.fault = fault
        with capture_logs() as events:
            await asyncio.sleep(3600 + 90)
        assert has(keys, "old")
        assert [event["event"] for event in events] == ["JWKS not fetched"] * 2
        issuer.fault, issuer.keys = None, {"new": NEW}
        await asyncio.sleep(60)
        assert has(keys, "new")
        return issuer.asked_ms

    assert run(body) == [0, HOUR_MS, HOUR_MS + RETRY_MS, HOUR_MS + 2 * RETRY_MS]


def test_response_without_keys_keeps_the_old_ones():
    async def body(issuer, keys):
        issuer.keys = {}
        with capture_logs() as events:
            await asyncio.sleep(3601)
        assert has(keys, "old")
        assert "no public key" in events[0]["reason"]

    run(body)


def test_start_fails_if_the_first_fetch_fails():
    async def scenario(_random):
        issuer = Issuer()
        issuer.fault = OperatingError("the response is 404 Not Found")
        keys = Jwks(Sasl(oauth_jwks_url="https://issuer/keys"), clock_ms, issuer)
        with pytest.raises(ConfigError, match=r"sasl\.oauthJwksUrl: .* 404 Not Found"):
            await keys.start()
        await keys.close()

    virtual_time.run(scenario, seed=0)


def test_start_fails_without_a_source():
    async def scenario(_random):
        with pytest.raises(ConfigError, match=r"set sasl\.oauthJwksFile or sasl\.oauthJwksUrl"):
            await Jwks(Sasl(), clock_ms).start()

    virtual_time.run(scenario, seed=0)


def test_changed_file_is_reloaded(tmp_path):
    file = tmp_path / "keys.json"
    file.write_bytes(jwks(jwk(OLD, kid="old")))

    async def scenario(_random):
        keys = Jwks(Sasl(oauth_jwks_file=str(file)), clock_ms)
        await keys.start()
        assert has(keys, "old")
        file.write_bytes(jwks(jwk(NEW, kid="new"), jwk(OLD, kid="old")))
        await asyncio.sleep(1)
        assert has(keys, "new")
        file.write_bytes(b"half of a fi")
        await asyncio.sleep(1)
        assert has(keys, "new")
        file.write_bytes(jwks(jwk(NEW, kid="new")))
        await asyncio.sleep(1)
        assert not has(keys, "old")
        await keys.close()

    virtual_time.run(scenario, seed=0)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "cannot be read"), (b"x", "is not a JWKS"), (jwks(), "no public")],
)
def test_start_fails_with_an_unusable_file(tmp_path, content, reason):
    file = tmp_path / "keys.json"
    if content is not None:
        file.write_bytes(content)

    async def scenario(_random):
        with pytest.raises(ConfigError, match=rf"sasl\.oauthJwksFile: .*{reason}"):
            await Jwks(Sasl(oauth_jwks_file=str(file)), clock_ms).start()

    virtual_time.run(scenario, seed=0)


def test_keys_of_file_and_url_are_combined(tmp_path):
    file = tmp_path / "keys.json"
    file.write_bytes(jwks(jwk(NEW, kid="new")))

    async def body(_issuer, keys):
        assert has(keys, "new")
        assert has(keys, "old")

    run(body, oauth_jwks_file=str(file))
