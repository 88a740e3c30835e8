"""An encrypted control plane is for those who show a certificate, and a name that may come in."""

import asyncio
import shutil
from contextlib import aclosing, asynccontextmanager

import pytest
import uvloop
from structlog.testing import capture_logs

from kafscale.config.sections.security import ClientTls, PeerTls
from kafscale.control_plane.allowed_names import Admission
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.errors import ControlError, UnreachableError
from kafscale.control_plane.server import ControlServer
from kafscale.control_plane.tls import ServerTls
from kafscale.errors import ConfigError
from kafscale.security.reloading_file import WatchedFiles
from services.certificates import make_certificates
from unit.broker.harness import run
from unit.control_plane.stage import ScriptedBroker, take


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("made"), "operator")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory):
    """Of an authority that nobody knows."""
    return make_certificates(tmp_path_factory.mktemp("stranger"))


def server_tls(made, **others):
    files = {
        "cert_file": str(made.server_certificate),
        "key_file": str(made.server_key),
        "ca_file": str(made.authority),
    }
    settings = PeerTls(enabled=True, **(files | others))
    return ServerTls(settings, WatchedFiles(files.values()).changed)


def client_tls(trusted, shown=None, **others):
    """What a client asks with that trusts one authority, and shows a certificate of another."""
    files = {}
    if shown:
        files = {"cert_file": str(shown.client_certificate), "key_file": str(shown.client_key)}
    return ClientTls(ca_file=str(trusted.authority), **(files | others))


@asynccontextmanager
async def served(made, *, allowed=(), host="127.0.0.1"):
    """The address of an encrypted control plane."""
    server = ControlServer(ScriptedBroker(), tls=server_tls(made), admission=Admission(allowed))
    await server.start(host, 0)
    try:
        yield f"{host}:{server.port}"
    finally:
        await server.close()


async def status(address, tls):
    async with ControlClient(address, tls) as client:
        return (await client.status()).broker_id


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_who_shows_a_certificate_is_served(made, loop):
    async def story():
        async with served(made) as address:
            assert await status(address, client_tls(made, made)) == "3"
            assert await status(address.replace("127.0.0.1", "localhost"), client_tls(made, made))

    run(story, loop)


def test_who_shows_none_is_not(made):
    async def story():
        async with served(made) as address:
            with pytest.raises(UnreachableError, match="wants a certificate"):
                await status(address, client_tls(made))
            with pytest.raises(UnreachableError, match="wants a certificate"):
                await status(address, None)

    run(story)


def test_both_sides_check_who_has_issued_a_certificate(made, stranger):
    async def story():
        async with served(made) as address:
            with pytest.raises(UnreachableError, match=r"whom we do not know \(caFile\)"):
                await status(address, client_tls(stranger, made))
            with pytest.raises(UnreachableError, match="wants a certificate"):
                await status(address, client_tls(made, stranger))

    run(story)


def test_a_client_that_encrypts_is_told_where_nobody_else_does(made):
    async def story():
        server = ControlServer(ScriptedBroker())
        await server.start("127.0.0.1", 0)
        with pytest.raises(UnreachableError, match=r"\(controlTls\)|hangs up"):
            await status(f"127.0.0.1:{server.port}", client_tls(made, made))
        await server.close()

    run(story)


def test_a_certificate_is_for_a_name_unless_that_does_not_matter(made, stranger):
    async def story():
        async with served(made, host="127.0.0.2") as address:
            with pytest.raises(UnreachableError, match=r"for another name \(checkHost\)"):
                await status(address, client_tls(made, made))
            assert await status(address, client_tls(made, made, check_host=False)) == "3"
            with pytest.raises(UnreachableError, match="certificate verify failed"):
                await status(address, client_tls(stranger, made, check_host=False))

    run(story)


def test_a_name_that_does_not_matter_is_not_found_where_nobody_listens(made):
    async def story():
        async with served(made) as address:
            pass
        with pytest.raises(UnreachableError, match=f"no broker answers .* at {address}"):
            await status(address, client_tls(made, made, check_host=False))

    run(story)


@pytest.mark.parametrize("allowed", [(), ("client",), ("other", "client")])
def test_who_is_named_may_come_in(made, allowed):
    async def story():
        async with served(made, allowed=allowed) as address:
            assert await status(address, client_tls(made, made)) == "3"

    run(story)


def test_names_of_hosts_count_as_well(made):
    """A broker shows to others the certificate that it serves with."""
    shown = {"cert_file": str(made.server_certificate), "key_file": str(made.server_key)}

    async def story():
        async with served(made, allowed=["localhost"]) as address:
            assert await status(address, client_tls(made, **shown)) == "3"
        # An address is no name: whoever gets it next would come in.
        async with served(made, allowed=["127.0.0.1"]) as address:
            with pytest.raises(ControlError, match="PERMISSION_DENIED"):
                await status(address, client_tls(made, **shown))

    run(story)


def test_who_is_not_named_is_refused_and_told_of(made):
    async def story():
        async with (
            served(made, allowed=["operator"]) as address,
            ControlClient(address, client_tls(made, made)) as client,
        ):
            with pytest.raises(ControlError, match=r"CN=client may not .*allowedNames") as one:
                await client.flush()
            assert one.value.status == "PERMISSION_DENIED"
            with pytest.raises(ControlError, match="PERMISSION_DENIED"):
                async with aclosing(client.watch_assignments()) as events:
                    await anext(events)

    with capture_logs() as logs:
        run(story)
    denied = [line for line in logs if line["event"] == "access denied"]
    assert [line["api"] for line in denied] == ["control.TriggerFlush", "control.WatchAssignments"]
    assert {line["principal"] for line in denied} == {"CN=client"}
    assert all(line["client"].startswith("ipv4:127.0.0.1:") for line in denied)


def test_what_changes_the_cluster_is_told_of(made):
    async def story():
        async with served(made) as address, ControlClient(address, client_tls(made, made)) as asker:
            await asker.status()
            await asker.flush()

    with capture_logs() as logs:
        run(story)
    assert [(line["event"], line["api"]) for line in logs] == [("changed", "control.TriggerFlush")]


@pytest.fixture
def renewable(tmp_path):
    """Files of the test's own, that it may replace."""
    return make_certificates(tmp_path / "renewable")


def test_new_files_are_for_new_connections_and_old_ones_stay(renewable, made):
    async def story():
        broker = ScriptedBroker()
        server = ControlServer(broker, tls=server_tls(renewable))
        await server.start("127.0.0.1", 0)
        address = f"127.0.0.1:{server.port}"
        async with (
            ControlClient(address, client_tls(renewable, renewable)) as old,
            aclosing(old.watch_assignments()) as events,
        ):
            assert len(await take(events, 1)) == 1
            for path in (renewable.authority, renewable.server_certificate, renewable.server_key):
                shutil.copy(made.authority.parent / path.name, path)
            assert await status(address, client_tls(made, made)) == "3"
            broker.assign(orders_0=None)
            assert len(await take(events, 1)) == 1
            assert (await old.status()).broker_id == "3"
        await server.close()

    with capture_logs() as logs:
        run(story)
    assert [line["event"] for line in logs] == ["certificate reloaded"]


def test_files_of_no_use_are_told_once_and_the_former_stay_in_use(renewable, made):
    async def story():
        async with served(renewable) as address:
            shutil.copy(made.server_certificate, renewable.server_certificate)
            for _ in range(2):
                assert await status(address, client_tls(renewable, renewable)) == "3"

    with capture_logs() as logs:
        run(story)
    [line] = logs
    assert (line["log_level"], line["event"]) == ("error", "certificate not reloaded")
    assert "control.tls.keyFile" in line["reason"]


@pytest.mark.parametrize("setting", ["cert_file", "key_file", "ca_file"])
def test_a_start_with_files_of_no_use_is_refused(made, setting):
    name = f"control.tls.{setting.replace('_f', 'F')}: cannot read absent"
    with pytest.raises(ConfigError, match=name):
        server_tls(made, **{setting: "absent"})


def test_a_client_with_files_of_no_use_says_so(made):
    async def story():
        with pytest.raises(ConfigError, match=r"client.tls.certFile: cannot read absent"):
            await status("127.0.0.1:1", client_tls(made, cert_file="absent"))

    run(story)
