"""Sources of S3 credentials and assumed roles, as the servers see them.

The S3 requests go to a server that records them, signatures included; moto serves STS.
"""

import asyncio
import json
import re
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kafscale.errors import ConfigError, ObjectNotFoundError, OperatingError, StoreUnavailableError
from kafscale.storage.objects.s3.boto import BotoClient
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.store import S3ObjectStore
from services.process import free_port
from services.scripted_server import ScriptedServer, response, scripted_server

pytestmark = pytest.mark.timeout(60)

ROLE = "arn:aws:iam::123456789012:role/kafscale"
MISSING = response(404, "NoSuchKey")


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path) -> None:
    """Remove the AWS settings of this machine, and disable instance metadata."""
    for name in (
        "ACCESS_KEY_ID",
        "SECRET_ACCESS_KEY",
        "SESSION_TOKEN",
        "PROFILE",
        "ROLE_ARN",
        "WEB_IDENTITY_TOKEN_FILE",
        "CONTAINER_CREDENTIALS_FULL_URI",
    ):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))


@pytest.fixture
def bucket(moto_bucket) -> S3Bucket:
    """A bucket without configured keys."""
    return S3Bucket(name="bucket", path_style=True, sts_endpoint=moto_bucket.endpoint)


@asynccontextmanager
async def recorded_store(bucket: S3Bucket) -> AsyncIterator[tuple[S3ObjectStore, ScriptedServer]]:
    """A store and the server that records its requests."""
    async with scripted_server(MISSING) as server:
        store = S3ObjectStore(replace(bucket, endpoint=server.url))
        try:
            yield store, server
        finally:
            await store.close()


def signer(request: str) -> tuple[str, str]:
    """The access key and the session token of a request."""
    key = re.search(r"Credential=([^/]+)/", request)
    token = re.search(r"x-amz-security-token: (\S+)", request, re.IGNORECASE)
    assert key is not None
    return key[1], token[1] if token else ""


def sign(bucket: S3Bucket) -> tuple[str, str]:
    """The access key and the session token that sign a request to a bucket."""

    async def scenario() -> tuple[str, str]:
        async with recorded_store(bucket) as (store, server):
            await store.authenticate()
            with pytest.raises(ObjectNotFoundError):
                await store.get("ns/a")
            return signer(server.requests[0])

    return asyncio.run(scenario())


def write_profiles(path: Path, **keys: str) -> Path:
    profiles = [
        f"[{profile}]\naws_access_key_id = {key}\naws_secret_access_key = hidden\n"
        for profile, key in keys.items()
    ]
    path.write_text("\n".join(profiles))
    return path


# --- sources --------------------------------------------------------------------------------------


def test_credentials_from_the_environment(bucket, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from-env")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    assert sign(bucket) == ("from-env", "")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "its-token")
    assert sign(bucket) == ("from-env", "its-token")


def test_credentials_from_a_file(bucket, tmp_path, monkeypatch):
    path = write_profiles(tmp_path / "credentials", default="from-default", other="from-other")
    by_path = replace(bucket, credential_source="file", credentials_file=str(path))
    assert sign(by_path) == ("from-default", "")
    assert sign(replace(by_path, profile="other")) == ("from-other", "")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    assert sign(replace(bucket, credential_source="file")) == ("from-default", "")


def test_changed_credentials_file_is_read_again(bucket, tmp_path):
    path = write_profiles(tmp_path / "credentials", default="first")
    aws = BotoClient(replace(bucket, credential_source="file", credentials_file=str(path)))
    assert aws.keys().access_key == "first"
    write_profiles(path, default="second")
    assert aws.keys().access_key == "second"


def test_credentials_from_a_container_role(bucket, monkeypatch):
    """As on ECS, and on EKS with pod identity."""
    issued = {
        "AccessKeyId": "from-role",
        "SecretAccessKey": "hidden",
        "Token": "its-token",
        "Expiration": "2099-01-01T00:00:00Z",
    }

    async def scenario():
        async with scripted_server(response(200, body=json.dumps(issued))) as agent:
            monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{agent.url}/role")
            for source in ("iam", "workload-identity"):
                async with recorded_store(replace(bucket, credential_source=source)) as (
                    store,
                    server,
                ):
                    with pytest.raises(ObjectNotFoundError):
                        await store.get("ns/a")
                    assert signer(server.requests[0]) == ("from-role", "its-token")
            assert agent.requests[0].startswith("GET /role ")

    asyncio.run(scenario())


@pytest.mark.parametrize("given", ["by the cluster", "by the setting", "by both"])
def test_credentials_from_a_service_account(bucket, monkeypatch, tmp_path, given):
    """The role is assumed once with the pod's web identity token, wherever its ARN is set."""
    token = tmp_path / "token"
    token.write_text("a token of Kubernetes")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    if given != "by the setting":
        monkeypatch.setenv("AWS_ROLE_ARN", ROLE)
    role_arn = "" if given == "by the cluster" else ROLE
    pod = replace(bucket, credential_source="workload-identity", role_arn=role_arn)
    key, session_token = sign(pod)
    assert key.startswith("ASIA")
    assert session_token
    aws = BotoClient(pod)
    first = aws.keys()
    assert aws.keys() == first, "they are valid for an hour"
    assert aws._assumed is None


@pytest.mark.parametrize("source", ["env", "file", "iam", "workload-identity"])
def test_credential_source_excludes_other_sources(bucket, source, monkeypatch, tmp_path):
    if source != "env":
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from-env")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    if source != "file":
        path = write_profiles(tmp_path / "credentials", default="from-default")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))

    async def scenario():
        async with recorded_store(replace(bucket, credential_source=source)) as (store, server):
            with pytest.raises(ConfigError, match="no credentials for S3") as failure:
                await store.authenticate()
            assert re.search(r"s3\.(credentialSource|credentialsFile)", str(failure.value))
            with pytest.raises(OperatingError, match="no credentials for S3"):
                await store.get("ns/a")
            assert server.requests == []

    asyncio.run(scenario())


def test_missing_profile_is_named_in_the_error(bucket, tmp_path):
    path = write_profiles(tmp_path / "credentials", default="from-default")
    absent = replace(bucket, credential_source="file", credentials_file=str(path), profile="absent")
    with pytest.raises(ConfigError, match="absent"):
        sign(absent)


# --- roles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["given", "env", "file"])
def test_role_is_assumed_with_credentials_of_any_source(bucket, source, monkeypatch, tmp_path):
    with_role = replace(bucket, role_arn=ROLE)
    if source == "given":
        with_role = replace(with_role, access_key="given", secret_key="hidden")  # noqa: S106
    elif source == "env":
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from-env")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    else:
        path = write_profiles(tmp_path / "credentials", default="from-default")
        with_role = replace(with_role, credential_source="file", credentials_file=str(path))
    key, token = sign(with_role)
    assert key.startswith("ASIA")
    assert token


def test_role_is_assumed_again_after_half_of_its_lifetime(bucket):
    now = [0.0]
    aws = BotoClient(
        replace(bucket, role_arn=ROLE, access_key="given", secret_key="hidden"),  # noqa: S106
        clock=lambda: now[0],
    )
    first = aws.keys()
    half_of_the_time_s = aws._assume_at
    now[0] = half_of_the_time_s - 1
    assert aws.keys() == first
    now[0] = half_of_the_time_s
    assert aws.keys() != first


def test_denied_role_fails_and_unreachable_sts_is_retriable(bucket):
    denied = (
        "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not for you</Message></Error>"
        "</ErrorResponse>"
    )
    given = replace(bucket, role_arn=ROLE, access_key="given", secret_key="hidden")  # noqa: S106

    async def scenario():
        async with (
            scripted_server(response(403, body=denied)) as sts,
            recorded_store(replace(given, sts_endpoint=sts.url)) as (store, _),
        ):
            with pytest.raises(OperatingError, match="AssumeRole: AccessDenied") as failure:
                await store.authenticate()
            assert not isinstance(failure.value, StoreUnavailableError)
        away = f"http://127.0.0.1:{free_port()}"
        async with recorded_store(replace(given, sts_endpoint=away)) as (store, _):
            for call in (store.authenticate, lambda: store.get("ns/a")):
                with pytest.raises(StoreUnavailableError, match="Could not connect"):
                    await call()

    asyncio.run(scenario())


def test_credentials_are_never_logged_or_shown(bucket, caplog):
    given = replace(bucket, role_arn=ROLE, access_key="an-access-key", secret_key="hidden-hidden")  # noqa: S106

    async def scenario() -> tuple[str, str]:
        async with recorded_store(given) as (store, server):
            with pytest.raises(ObjectNotFoundError):
                await store.get("ns/a")
            shown.append(repr(store._credentials) + repr(store._store))
            return signer(server.requests[0])

    shown: list[str] = []
    with caplog.at_level("DEBUG"):
        key, token = asyncio.run(scenario())
        away = replace(given, sts_endpoint=f"http://127.0.0.1:{free_port()}")
        try:
            BotoClient(away).keys()
        except OperatingError as error:
            shown += traceback.format_exception(error)
    shown.append(caplog.text)
    for secret in ("an-access-key", "hidden-hidden", key, token):
        assert secret not in "\n".join(shown)
