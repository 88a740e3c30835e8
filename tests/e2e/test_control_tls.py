"""The control plane of a broker that serves it over TLS only."""

import asyncio
import json
import shutil
from contextlib import aclosing

import pytest

from kafscale.config.sections.security import ClientTls
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.errors import ControlError, UnreachableError
from kafscale.spark.jobs.shared.owners import PartitionOwners
from services.certificates import make_certificates
from services.shell import Shell

pytestmark = pytest.mark.timeout(90)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("certificates"), "operator")


@pytest.fixture(scope="module")
def untrusted(tmp_path_factory):
    """Certificates of an untrusted CA."""
    return make_certificates(tmp_path_factory.mktemp("untrusted"))


def tls_settings(certificates):
    return {
        "control_tls_enabled": "true",
        "control_tls_cert_file": str(certificates.server_certificate),
        "control_tls_key_file": str(certificates.server_key),
        "control_tls_ca_file": str(certificates.authority),
    }


@pytest.fixture
def tls_broker(start_broker, certificates):
    """A broker whose control plane accepts only the operator and brokers."""
    return start_broker(**tls_settings(certificates), control_allowed_subjects="operator,broker")


def client_tls(certificates, user, trusted=None):
    files = certificates.users[user]
    return ClientTls(
        ca_file=str((trusted or certificates).authority),
        cert_file=str(files.certificate),
        key_file=str(files.key),
    )


def call(address, tls):
    async def run():
        async with ControlClient(address, tls) as client:
            return await client.status()

    return asyncio.run(run())


def test_control_plane_serves_allowed_certificates_only(tls_broker, certificates, untrusted):
    status = call(tls_broker.control_address, client_tls(certificates, "operator"))
    [myself] = status.brokers
    assert f"{myself.control_host}:{myself.control_port}" == tls_broker.control_address

    with pytest.raises(ControlError, match=r"CN=client may not use the control plane"):
        call(tls_broker.control_address, client_tls(certificates, "client"))
    for tls in (
        None,
        ClientTls(ca_file=str(certificates.authority)),
        client_tls(untrusted, "client", trusted=certificates),
        client_tls(certificates, "operator", trusted=untrusted),
    ):
        with pytest.raises(UnreachableError):
            call(tls_broker.control_address, tls)
    assert '"event":"access denied"' in tls_broker.logged().replace('": "', '":"')


def test_metrics_port_does_not_serve_the_control_plane(tls_broker, certificates):
    for tls in (None, client_tls(certificates, "operator")):
        with pytest.raises(UnreachableError):
            call(f"localhost:{tls_broker.metrics_port}", tls)
    assert tls_broker.http("/metrics")[0] == 200


def test_commands_and_jobs_use_the_configured_certificate(tls_broker, certificates):
    files = certificates.users["operator"]
    settings = {
        "control_servers": tls_broker.control_address,
        "client_control_tls_enabled": "true",
        "client_tls_ca_file": str(certificates.authority),
        "client_tls_cert_file": str(files.certificate),
        "client_tls_key_file": str(files.key),
    }
    status = json.loads(Shell(tls_broker.address, **settings)("cluster", "status", "-o", "json"))
    assert [broker["state"] for broker in status["brokers"]] == ["ready"]
    settings.pop("client_control_tls_enabled")
    message = Shell(tls_broker.address, **settings)("cluster", "status", code=1)
    assert "controlTls" in message

    async def connect_owners():
        async with PartitionOwners(
            [tls_broker.control_address], client_tls(certificates, "operator")
        ):
            return True

    assert asyncio.run(connect_owners())


def test_renewed_certificates_keep_connections_open(start_broker, tmp_path, certificates):
    renewed = make_certificates(tmp_path / "renewed")
    broker = start_broker(**tls_settings(renewed))
    address = broker.control_address

    async def scenario():
        async with (
            ControlClient(address, client_tls(renewed, "client")) as old,
            aclosing(old.watch_assignments()) as events,
        ):
            await anext(events)
            for path in (renewed.authority, renewed.server_certificate, renewed.server_key):
                shutil.copy(certificates.authority.parent / path.name, path)
            async with ControlClient(address, client_tls(certificates, "operator")) as new:
                assert (await new.status()).broker_id == (await old.status()).broker_id
            await anext(events)

    asyncio.run(scenario())
    assert "certificate reloaded" in broker.logged()
