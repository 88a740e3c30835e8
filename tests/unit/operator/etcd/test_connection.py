"""Tests of the operator's settings for an etcd, built from Secrets."""

import asyncio
import base64
import stat
from pathlib import Path

import pytest

from kafscale.errors import OperatingError
from kafscale.operator.etcd.connection import etcd_settings
from kafscale.operator.manifests.names import EtcdAccess
from services.memory_kube import MemoryKube

ACCESS = EtcdAccess(
    endpoints=("https://etcd-0:2379", "https://etcd-1:2379"),
    tls_secret="tls",  # noqa: S106 - the name of one.
    credentials_secret="login",  # noqa: S106
)


def secret(name, **entries):
    data = {key.replace("_", "."): value for key, value in entries.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default"},
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


def credentials(username, password):
    entries = {"KAFSCALE_ETCD_USERNAME": username, "KAFSCALE_ETCD_PASSWORD": password}
    created = secret("login")
    created["data"] = {
        name: base64.b64encode(value.encode()).decode() for name, value in entries.items()
    }
    return created


def settings(tmp_path, access, *secrets):
    async def connection():
        kube = MemoryKube()
        for each in secrets:
            await kube.apply(each)
        return await etcd_settings(kube, "default", access, tmp_path)

    return asyncio.run(connection())


def test_secrets_become_settings_and_private_files(tmp_path):
    tls = secret("tls", ca_crt="a CA", tls_crt="a certificate", tls_key="a key")
    connection = settings(tmp_path, ACCESS, tls, credentials("root", "secret\n"))
    assert connection.endpoints == ACCESS.endpoints
    assert (connection.username, connection.password) == ("root", "secret")
    assert connection.tls.enabled
    files = [connection.tls.ca_file, connection.tls.cert_file, connection.tls.key_file]
    assert [Path(file).read_text() for file in files] == ["a CA", "a certificate", "a key"]
    assert {stat.S_IMODE(Path(file).stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(Path(files[0]).parent.stat().st_mode) == 0o700


def test_settings_change_with_the_secrets(tmp_path):
    first = settings(tmp_path, ACCESS, secret("tls", ca_crt="one"), credentials("root", "x"))
    same = settings(tmp_path, ACCESS, secret("tls", ca_crt="one"), credentials("root", "x"))
    other = settings(tmp_path, ACCESS, secret("tls", ca_crt="two"), credentials("root", "x"))
    assert first == same
    assert first != other
    assert Path(other.tls.ca_file).read_text() == "two"
    assert not Path(first.tls.ca_file).exists()
    assert other.tls.cert_file == ""


def test_etcd_without_secrets_uses_no_tls_or_the_system_cas(tmp_path):
    clear = settings(tmp_path, EtcdAccess(endpoints=("etcd:2379",)))
    assert not clear.tls.enabled
    assert clear.username == ""
    encrypted = settings(tmp_path, EtcdAccess(endpoints=("https://etcd:2379",)))
    assert encrypted.tls.enabled
    assert encrypted.tls.ca_file == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("existing", "missing"), [(secret("tls"), "login"), (credentials("a", "b"), "tls")]
)
def test_missing_secret_is_named_in_the_error(tmp_path, existing, missing):
    with pytest.raises(OperatingError, match=f"the Secret '{missing}' for etcd is missing"):
        settings(tmp_path, ACCESS, existing)
