"""A control plane with TLS serves clients with a certificate and an allowed name."""

import asyncio
import shutil
from contextlib import aclosing, asynccontextmanager

import pytest
import uvloop
from structlog.testing import capture_logs

from kafscale.config.sections.security import ClientTls, PeerTls
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.errors import ControlError, UnreachableError
from kafscale.control_plane.server import ControlServer
from kafscale.control_plane.tls import AllowedSubjects, ServerTls
from kafscale.errors import ConfigError
from services.certificates import make_certificates
from unit.broker.harness import run
from unit.control_plane.scripted_broker import ScriptedBroker, next_events


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("made"), "operator")


@pytest.fixture(scope="session")
def foreign_certificates(tmp_path_factory):
    """Of an unknown CA."""
    return make_certificates(tmp_path_factory.mktemp("stranger"))


def server_tls(certificates, **others):
    files = {
        "cert_file": str(certificates.server_certificate),
        "key_file": str(certificates.server_key),
        "ca_file": str(certificates.authority),
    }
    return ServerTls(PeerTls(enabled=True, **(files | others)))


def client_tls(trusted, certificate_files=None, **others):
    """Client settings that trust one CA, and present a certificate of another."""
    files = {}
    if certificate_files:
        files = {
            "cert_file": str(certificate_files.client_certificate),
            "key_file": str(certificate_files.client_key),
        }
    return ClientTls(ca_file=str(trusted.authority), **(files | others))


@asynccontextmanager
async def served(certificates, *, allowed=(), host="127.0.0.1"):
    """The address of a control plane with TLS."""
    server = ControlServer(
        ScriptedBroker(), tls=server_tls(certificates), allowed_subjects=AllowedSubjects(allowed)
    )
    await server.start(host, 0)
    try:
        yield f"{host}:{server.port}"
    finally:
        await server.close()


async def status(address, tls):
    async with ControlClient(address, tls) as client:
        return (await client.status()).broker_id


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_client_with_certificate_is_served(certificates, loop):
    async def scenario():
        async with served(certificates) as address:
            assert await status(address, client_tls(certificates, certificates)) == "3"
            assert await status(
                address.replace("127.0.0.1", "localhost"), client_tls(certificates, certificates)
            )

    run(scenario, loop)


def test_client_without_certificate_is_rejected(certificates):
    async def scenario():
        async with served(certificates) as address:
            with pytest.raises(UnreachableError, match="requires a certificate"):
                await status(address, client_tls(certificates))
            with pytest.raises(UnreachableError, match="requires a certificate"):
                await status(address, None)

    run(scenario)


def test_both_sides_check_the_issuer(certificates, foreign_certificates):
    async def scenario():
        async with served(certificates) as address:
            with pytest.raises(UnreachableError, match=r"trusted CA \(caFile\)"):
                await status(address, client_tls(foreign_certificates, certificates))
            with pytest.raises(UnreachableError, match="requires a certificate"):
                await status(address, client_tls(certificates, foreign_certificates))

    run(scenario)


def test_tls_client_at_a_plain_server(certificates):
    async def scenario():
        server = ControlServer(ScriptedBroker())
        await server.start("127.0.0.1", 0)
        with pytest.raises(UnreachableError, match=r"\(client.controlTls\)|closed the connection"):
            await status(f"127.0.0.1:{server.port}", client_tls(certificates, certificates))
        await server.close()

    run(scenario)


def test_host_name_is_checked_unless_disabled(certificates, foreign_certificates):
    async def scenario():
        async with served(certificates, host="127.0.0.2") as address:
            with pytest.raises(UnreachableError, match=r"for another host \(verifyHostname\)"):
                await status(address, client_tls(certificates, certificates))
            assert (
                await status(address, client_tls(certificates, certificates, verify_hostname=False))
                == "3"
            )
            with pytest.raises(UnreachableError, match="certificate verify failed"):
                await status(
                    address, client_tls(foreign_certificates, certificates, verify_hostname=False)
                )

    run(scenario)


def test_unchecked_host_name_of_a_closed_port(certificates):
    async def scenario():
        async with served(certificates) as address:
            pass
        with pytest.raises(UnreachableError, match=f"no broker responds .* at {address}"):
            await status(address, client_tls(certificates, certificates, verify_hostname=False))

    run(scenario)


@pytest.mark.parametrize("allowed", [(), ("client",), ("other", "client")])
def test_allowed_name_is_served(certificates, allowed):
    async def scenario():
        async with served(certificates, allowed=allowed) as address:
            assert await status(address, client_tls(certificates, certificates)) == "3"

    run(scenario)


def test_dns_names_are_allowed_names(certificates):
    """A broker presents to others the certificate that it serves with."""
    certificate_files = {
        "cert_file": str(certificates.server_certificate),
        "key_file": str(certificates.server_key),
    }

    async def scenario():
        async with served(certificates, allowed=["localhost"]) as address:
            assert await status(address, client_tls(certificates, **certificate_files)) == "3"
        # An address is not a name: another host may get it.
        async with served(certificates, allowed=["127.0.0.1"]) as address:
            with pytest.raises(ControlError, match="PERMISSION_DENIED"):
                await status(address, client_tls(certificates, **certificate_files))

    run(scenario)


def test_other_names_are_rejected_and_audited(certificates):
    async def scenario():
        async with (
            served(certificates, allowed=["operator"]) as address,
            ControlClient(address, client_tls(certificates, certificates)) as client,
        ):
            with pytest.raises(ControlError, match=r"CN=client may not .*allowedSubjects") as one:
                await client.flush()
            assert one.value.status == "PERMISSION_DENIED"
            with pytest.raises(ControlError, match="PERMISSION_DENIED"):
                async with aclosing(client.watch_assignments()) as events:
                    await anext(events)

    with capture_logs() as logs:
        run(scenario)
    denied = [line for line in logs if line["event"] == "access denied"]
    assert [line["api"] for line in denied] == ["control.TriggerFlush", "control.WatchAssignments"]
    assert {line["principal"] for line in denied} == {"CN=client"}
    assert all(line["client"].startswith("ipv4:127.0.0.1:") for line in denied)


def test_changes_are_audited(certificates):
    async def scenario():
        async with (
            served(certificates) as address,
            ControlClient(address, client_tls(certificates, certificates)) as client,
        ):
            await client.status()
            await client.flush()

    with capture_logs() as logs:
        run(scenario)
    assert [(line["event"], line["api"]) for line in logs] == [("changed", "control.TriggerFlush")]


@pytest.fixture
def renewable(tmp_path):
    """Files that the test may replace."""
    return make_certificates(tmp_path / "renewable")


def test_new_certificates_apply_to_new_connections(renewable, certificates):
    async def scenario():
        broker = ScriptedBroker()
        server = ControlServer(broker, tls=server_tls(renewable))
        await server.start("127.0.0.1", 0)
        address = f"127.0.0.1:{server.port}"
        async with (
            ControlClient(address, client_tls(renewable, renewable)) as old,
            aclosing(old.watch_assignments()) as events,
        ):
            assert len(await next_events(events, 1)) == 1
            for path in (renewable.authority, renewable.server_certificate, renewable.server_key):
                shutil.copy(certificates.authority.parent / path.name, path)
            assert await status(address, client_tls(certificates, certificates)) == "3"
            broker.assign(orders_0=None)
            assert len(await next_events(events, 1)) == 1
            assert (await old.status()).broker_id == "3"
        await server.close()

    with capture_logs() as logs:
        run(scenario)
    assert [line["event"] for line in logs] == ["certificate reloaded"]


def test_invalid_new_files_are_logged_once_and_ignored(renewable, certificates):
    async def scenario():
        async with served(renewable) as address:
            shutil.copy(certificates.server_certificate, renewable.server_certificate)
            for _ in range(2):
                assert await status(address, client_tls(renewable, renewable)) == "3"

    with capture_logs() as logs:
        run(scenario)
    [line] = logs
    assert (line["log_level"], line["event"]) == ("error", "certificate not reloaded")
    assert "control.tls.keyFile" in line["reason"]


@pytest.mark.parametrize("setting", ["cert_file", "key_file", "ca_file"])
def test_server_with_invalid_files_is_a_config_error(certificates, setting):
    name = f"control.tls.{setting.replace('_f', 'F')}: cannot read absent"
    with pytest.raises(ConfigError, match=name):
        server_tls(certificates, **{setting: "absent"})


def test_client_with_invalid_files_is_a_config_error(certificates):
    async def scenario():
        with pytest.raises(ConfigError, match=r"client.tls.certFile: cannot read absent"):
            await status("127.0.0.1:1", client_tls(certificates, cert_file="absent"))

    run(scenario)
