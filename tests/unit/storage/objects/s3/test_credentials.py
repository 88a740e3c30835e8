"""Credentials: refreshed in the background, used while valid, and never shown."""

import asyncio
import subprocess
import sys
import threading

import pytest

from kafscale.errors import StoreUnavailableError
from kafscale.storage.objects.s3.boto import AccessKeys
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.credentials import (
    REFRESH_S,
    FixedCredentials,
    RefreshingCredentials,
    credentials_for,
)


class Issuer:
    """Issues numbered keys, unless it is away, and never in the thread of the event loop."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.count = 0
        self.is_away = False
        self.gate = threading.Event()
        self.gate.set()
        self.credentials = RefreshingCredentials(self.issue, lambda: self.now)

    def issue(self) -> AccessKeys:
        assert threading.current_thread() is not threading.main_thread()
        assert self.gate.wait(10)
        if self.is_away:
            raise StoreUnavailableError("no response")
        self.count += 1
        return AccessKeys(f"key-{self.count}", "secret", "token")

    async def key(self) -> str:
        return (await self.credentials())["access_key_id"]

    async def later(self, seconds: float) -> str:
        """The key that is handed out after a while, when all that this has set off is done."""
        self.now += seconds
        await self.key()
        if self.credentials._refresh is not None:
            await asyncio.wait([self.credentials._refresh])
        return await self.key()


def test_keys_are_fetched_once_and_then_about_every_minute():
    async def scenario():
        issuer = Issuer()
        assert await asyncio.gather(*(issuer.key() for _ in range(10))) == ["key-1"] * 10
        assert await issuer.later(REFRESH_S - 1) == "key-1"
        assert await issuer.later(1) == "key-2"
        assert await issuer.later(10 * REFRESH_S) == "key-3"
        await issuer.credentials.close()

    asyncio.run(scenario())


def test_client_asks_again_after_a_minute():
    """It does so five minutes before what it takes for the end."""

    async def scenario():
        issuer = Issuer()
        result = await issuer.credentials()
        assert result["expires_at"].timestamp() == issuer.now + 300 + REFRESH_S
        assert (result["secret_access_key"], result["token"]) == ("secret", "token")

    asyncio.run(scenario())


def test_requests_do_not_wait_for_new_keys_while_there_are_old_ones():
    async def scenario():
        issuer = Issuer()
        await issuer.key()
        issuer.gate.clear()
        issuer.now += REFRESH_S
        for _ in range(3):
            assert await issuer.key() == "key-1"
        issuer.gate.set()
        await asyncio.wait([issuer.credentials._refresh])
        assert await issuer.key() == "key-2"

    asyncio.run(scenario())


def test_old_keys_are_used_until_there_are_new_ones():
    async def scenario():
        issuer = Issuer()
        await issuer.key()
        issuer.is_away = True
        for _ in range(5):
            assert await issuer.later(REFRESH_S) == "key-1"
        issuer.is_away = False
        assert await issuer.later(REFRESH_S) == "key-2"

    asyncio.run(scenario())


def test_error_is_raised_without_keys_and_fetch_can_be_repeated():
    async def scenario():
        issuer = Issuer()
        issuer.is_away = True
        for call in (issuer.credentials.refresh, issuer.key, issuer.key):
            with pytest.raises(StoreUnavailableError, match="no response"):
                await call()
        issuer.is_away = False
        assert await issuer.key() == "key-1"

    asyncio.run(scenario())


def test_fixed_keys_are_used_unless_there_is_a_role():
    given = S3Bucket(name="records", access_key="a", secret_key="b", session_token="c")  # noqa: S106
    result = credentials_for(given)
    assert isinstance(result, FixedCredentials)
    assert result() == {
        "access_key_id": "a",
        "secret_access_key": "b",
        "token": "c",
        "expires_at": None,
    }
    role = "arn:aws:iam::123456789012:role/kafscale"
    with_role = S3Bucket(name="records", access_key="a", secret_key="b", role_arn=role)  # noqa: S106
    assert isinstance(credentials_for(with_role), RefreshingCredentials)


def test_keys_are_not_shown():
    shown = repr(AccessKeys("access", "hidden", "psst")) + str(
        AccessKeys("access", "hidden", "psst")
    )
    assert not [secret for secret in ("access", "hidden", "psst") if secret in shown]


def test_botocore_is_not_loaded_if_not_needed():
    program = (
        "import sys\n"
        "from kafscale.storage.objects.factory import S3Bucket, S3ObjectStore\n"
        "S3ObjectStore(S3Bucket(name='records', access_key='a', secret_key='b'))\n"
        "sys.exit(bool({'botocore', 'boto3'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0  # noqa: S603
