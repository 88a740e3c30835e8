"""The control plane of a broker that serves it over TLS alone."""

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
from services.process import free_port
from services.shell import Shell


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("made"), "operator")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """Of an authority that nobody knows."""
    return make_certificates(tmp_path_factory.mktemp("stranger"))


def tls_settings(made, port):
    return {
        "control_addr": f"127.0.0.1:{port}",
        "control_tls_enabled": "true",
        "control_tls_cert_file": str(made.server_certificate),
        "control_tls_key_file": str(made.server_key),
        "control_tls_ca_file": str(made.authority),
    }


@pytest.fixture
def encrypted(start_broker, made):
    """A broker whose control plane is for the operator alone, and where that is."""
    port = free_port()
    broker = start_broker(**tls_settings(made, port), control_allowed_names="operator,broker")
    broker.control = f"localhost:{port}"
    return broker


def shown(made, user, trusted=None):
    files = made.users[user]
    return ClientTls(
        ca_file=str((trusted or made).authority),
        cert_file=str(files.certificate),
        key_file=str(files.key),
    )


def ask(address, tls):
    async def asked():
        async with ControlClient(address, tls) as client:
            return await client.status()

    return asyncio.run(asked())


def test_who_shows_the_right_certificate_is_served_and_nobody_else(encrypted, made, stranger):
    status = ask(encrypted.control, shown(made, "operator"))
    [myself] = status.brokers
    assert f"localhost:{myself.control_port}" == encrypted.control, "others are told of this port"

    with pytest.raises(ControlError, match=r"CN=client may not use the control plane"):
        ask(encrypted.control, shown(made, "client"))
    for tls in (
        None,
        ClientTls(ca_file=str(made.authority)),
        shown(stranger, "client", trusted=made),
        shown(made, "operator", trusted=stranger),
    ):
        with pytest.raises(UnreachableError):
            ask(encrypted.control, tls)
    assert '"event":"access denied"' in encrypted.logged().replace('": "', '":"')


def test_the_port_for_metrics_is_no_way_in(encrypted, made):
    for tls in (None, shown(made, "operator")):
        with pytest.raises(UnreachableError):
            ask(f"localhost:{encrypted.metrics_port}", tls)
    assert encrypted.http("/metrics")[0] == 200


def test_commands_and_jobs_show_the_certificate_of_the_settings(encrypted, made):
    files = made.users["operator"]
    settings = {
        "control_servers": encrypted.control,
        "client_control_tls": "true",
        "client_tls_ca_file": str(made.authority),
        "client_tls_cert_file": str(files.certificate),
        "client_tls_key_file": str(files.key),
    }
    status = json.loads(Shell(encrypted.address, **settings)("cluster", "status", "-o", "json"))
    assert [broker["state"] for broker in status["brokers"]] == ["ready"]
    settings.pop("client_control_tls")
    complaint = Shell(encrypted.address, **settings)("cluster", "status", code=1)
    assert "controlTls" in complaint

    async def found():
        async with PartitionOwners([encrypted.control], shown(made, "operator")):
            return True

    assert asyncio.run(found())


def test_certificates_are_renewed_while_connections_stay(start_broker, tmp_path, made):
    renewed = make_certificates(tmp_path / "renewed")
    port = free_port()
    broker = start_broker(**tls_settings(renewed, port))
    address = f"localhost:{port}"

    async def story():
        async with (
            ControlClient(address, shown(renewed, "client")) as old,
            aclosing(old.watch_assignments()) as events,
        ):
            await anext(events)
            for path in (renewed.authority, renewed.server_certificate, renewed.server_key):
                shutil.copy(made.authority.parent / path.name, path)
            async with ControlClient(address, shown(made, "operator")) as new:
                assert (await new.status()).broker_id == (await old.status()).broker_id
            await anext(events)

    asyncio.run(story())
    assert "certificate reloaded" in broker.logged()
