"""How the operator reaches an etcd: from what Secrets hold to settings with files."""

import asyncio
import base64
import stat
from pathlib import Path

import pytest

from kafscale.errors import OperatingError
from kafscale.operator.cluster.etcd_connection import etcd_settings
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


def login(username, password):
    entries = {"KAFSCALE_ETCD_USERNAME": username, "KAFSCALE_ETCD_PASSWORD": password}
    made = secret("login")
    made["data"] = {
        name: base64.b64encode(value.encode()).decode() for name, value in entries.items()
    }
    return made


def settings(tmp_path, access, *secrets):
    async def found():
        kube = MemoryKube()
        for each in secrets:
            await kube.apply(each)
        return await etcd_settings(kube, "default", access, tmp_path)

    return asyncio.run(found())


def test_secrets_become_settings_and_private_files(tmp_path):
    tls = secret("tls", ca_crt="an authority", tls_crt="a certificate", tls_key="a key")
    found = settings(tmp_path, ACCESS, tls, login("root", "secret\n"))
    assert found.endpoints == ACCESS.endpoints
    assert (found.username, found.password) == ("root", "secret")
    assert found.tls.enabled
    files = [found.tls.ca_file, found.tls.cert_file, found.tls.key_file]
    assert [Path(file).read_text() for file in files] == ["an authority", "a certificate", "a key"]
    assert {stat.S_IMODE(Path(file).stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(Path(files[0]).parent.stat().st_mode) == 0o700


def test_equal_secrets_make_equal_settings_and_others_make_others(tmp_path):
    first = settings(tmp_path, ACCESS, secret("tls", ca_crt="one"), login("root", "x"))
    same = settings(tmp_path, ACCESS, secret("tls", ca_crt="one"), login("root", "x"))
    other = settings(tmp_path, ACCESS, secret("tls", ca_crt="two"), login("root", "x"))
    assert first == same
    assert first != other
    assert Path(other.tls.ca_file).read_text() == "two"
    assert not Path(first.tls.ca_file).exists()
    assert other.tls.cert_file == ""


def test_an_etcd_without_secrets_is_reached_in_the_clear_or_with_the_system_s_authorities(tmp_path):
    clear = settings(tmp_path, EtcdAccess(endpoints=("etcd:2379",)))
    assert not clear.tls.enabled
    assert clear.username == ""
    encrypted = settings(tmp_path, EtcdAccess(endpoints=("https://etcd:2379",)))
    assert encrypted.tls.enabled
    assert encrypted.tls.ca_file == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("there", "missing"), [(secret("tls"), "login"), (login("a", "b"), "tls")])
def test_a_secret_that_is_missing_is_named(tmp_path, there, missing):
    with pytest.raises(OperatingError, match=f"the Secret '{missing}' for etcd is missing"):
        settings(tmp_path, ACCESS, there)
