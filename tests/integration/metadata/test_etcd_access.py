"""TLS and authentication of etcd, and the errors if they fail."""

import asyncio
import datetime as dt
import logging
import time

import pytest
import structlog
from structlog.testing import capture_logs

from kafscale.broker.stores import open_metadata
from kafscale.config.model import Config
from kafscale.config.sections.broker import Broker
from kafscale.config.sections.etcd import Etcd, EtcdTls
from kafscale.errors import ConfigError, OperatingError, StoreUnavailableError
from kafscale.metadata.store.base import Put
from kafscale.metadata.store.etcd.client import open_client
from kafscale.metadata.store.etcd.tls_reload import TlsFiles, TlsReload
from kafscale.security.tls.issuer import CertificateIssuer, IssuedCertificate
from services.certificates import make_certificates
from services.etcd_server import PASSWORD, USERNAME, EtcdServer
from services.process import free_port


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def untrusted(tmp_path_factory):
    """Certificates of an untrusted CA."""
    return make_certificates(tmp_path_factory.mktemp("untrusted"))


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory, certificates):
    with EtcdServer(tmp_path_factory.mktemp("tls"), certificates=certificates) as server:
        yield server


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    with EtcdServer(tmp_path_factory.mktemp("guarded")) as server:
        server.enable_authentication()
        yield server


def start(settings, *, startup_timeout_sec=2, then=None):
    """Open, use and close a store, as a broker does when it starts."""
    config = Config(broker=Broker(startup_timeout_sec=startup_timeout_sec), etcd=settings)

    async def scenario():
        store = await open_metadata(config, lambda: 0)
        try:
            return await (then or used)(store)
        finally:
            await store.close()

    return asyncio.run(scenario())


async def used(store):
    lease = await store.grant(10_000)
    last = (await store.commit([], [Put("/a", b"1", lease)])).revision
    assert await store.keep_alive(lease)
    commits = store.watch("/a", last - 1)
    assert [event.value for event in await anext(commits)] == [b"1"]
    await commits.aclose()
    await store.revoke(lease)
    return (await store.range("/")).entries == ()


# --- TLS --------------------------------------------------------------------------------------


def test_tls_connection_works(encrypted):
    assert start(encrypted.settings())


def test_endpoint_may_have_a_url_scheme(encrypted, etcd):
    assert start(encrypted.settings(endpoints=(f"https://{encrypted.members[0].endpoint}",)))
    etcd.control("del", "/", "--prefix")
    assert start(etcd.settings(endpoints=(f"http://{etcd.members[0].endpoint}",)))


def test_untrusted_etcd_certificate_fails_immediately(encrypted, untrusted):
    for tls in (EtcdTls(enabled=True, ca_file=str(untrusted.authority)), EtcdTls(enabled=True)):
        with pytest.raises(OperatingError, match="not trusted") as caught:
            start(encrypted.settings(tls=tls), startup_timeout_sec=60)
        assert not isinstance(caught.value, StoreUnavailableError)


def test_untrusted_client_certificate_fails_immediately(encrypted, certificates, untrusted):
    authority = str(certificates.authority)
    unknown = EtcdTls(
        enabled=True,
        ca_file=authority,
        cert_file=str(untrusted.client_certificate),
        key_file=str(untrusted.client_key),
    )
    for tls in (EtcdTls(enabled=True, ca_file=authority), unknown):
        with pytest.raises(OperatingError, match="certificate") as caught:
            start(encrypted.settings(tls=tls), startup_timeout_sec=60)
        assert not isinstance(caught.value, StoreUnavailableError)


def test_tls_on_one_side_only_fails(encrypted, etcd, certificates):
    with pytest.raises(StoreUnavailableError, match=r"set etcd\.tls\.enabled to true"):
        start(encrypted.settings(tls=EtcdTls()), startup_timeout_sec=1)
    with pytest.raises(StoreUnavailableError, match=r"set etcd\.tls\.enabled to false"):
        start(
            etcd.settings(tls=EtcdTls(enabled=True, ca_file=str(certificates.authority))),
            startup_timeout_sec=1,
        )


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"ca_file": "none"}, "caFile: cannot read .*none"),
        ({"ca_file": "client.key"}, "caFile: .* contains no certificate"),
        ({"cert_file": "client.crt", "key_file": "server.key"}, "does not match the certificate"),
        (
            {"cert_file": "client.crt", "key_file": "client.crt"},
            "keyFile: .* contains no private key",
        ),
    ],
)
def test_unusable_tls_files_are_named_in_the_error(certificates, files, message):
    directory = certificates.authority.parent
    named = {setting: str(directory / file) for setting, file in files.items()}
    settings = Etcd(endpoints=("127.0.0.1:1",), tls=EtcdTls(enabled=True, **named))
    with pytest.raises(ConfigError, match=message):
        start(settings)


async def reloading(server, settings, change):
    """Use etcd, change files, wait until they are reloaded or not, and return what was logged."""
    client = open_client(settings.endpoints, settings)
    files = TlsFiles(settings)
    reload = TlsReload(files, client.members, client.ping, 4, check_seconds=0.05)
    running = asyncio.ensure_future(reload.run())
    try:
        await client.check(4)
        with capture_logs() as logs:
            change()
            async with asyncio.timeout(5):
                while "etcd certificate" not in str(logs):  # noqa: ASYNC110 - a log has no event.
                    await asyncio.sleep(0.02)
        for member in server.members:
            await asyncio.to_thread(member.kill)
            await asyncio.to_thread(member.start)
        await client.check(4)
        return logs
    finally:
        running.cancel()
        await client.close()


def client_files(directory, certificates, lifetime):
    """Write another certificate of the CA for the same client."""
    ca = certificates.authority
    issuer = IssuedCertificate.read(ca.read_bytes(), ca.with_suffix(".key").read_bytes())
    expiry = dt.datetime.now(dt.UTC) + lifetime
    issued = CertificateIssuer(issuer, expiry - dt.timedelta(days=1), days=1).client("client")
    tls = EtcdTls(
        enabled=True,
        ca_file=str(ca),
        cert_file=str(directory / "tls.crt"),
        key_file=str(directory / "tls.key"),
    )
    (directory / "tls.key").write_bytes(issued.key_pem)
    (directory / "tls.crt").write_bytes(issued.certificate_pem)
    return tls


def test_renewed_certificate_is_used_without_a_restart(encrypted, certificates, tmp_path):
    """The first certificate has expired when etcd restarts and all connections are new."""
    lifetime = dt.timedelta(seconds=3)
    started = time.monotonic()
    settings = encrypted.settings(tls=client_files(tmp_path, certificates, lifetime))

    def renew():
        client_files(tmp_path, certificates, dt.timedelta(hours=1))
        time.sleep(max(started + 3.1 - time.monotonic(), 0))

    logs = asyncio.run(reloading(encrypted, settings, renew))
    assert [each["event"] for each in logs] == ["etcd certificate reloaded"]


def test_rejected_certificate_replaces_nothing(encrypted, certificates, untrusted, tmp_path):
    tls = client_files(tmp_path, certificates, dt.timedelta(hours=1))

    def spoil():
        (tmp_path / "tls.key").write_bytes(untrusted.client_key.read_bytes())
        (tmp_path / "tls.crt").write_bytes(untrusted.client_certificate.read_bytes())

    logs = asyncio.run(reloading(encrypted, encrypted.settings(tls=tls), spoil))
    assert [each["event"] for each in logs] == ["etcd certificate not reloaded"]
    assert "certificate" in logs[0]["reason"]


# --- user and password ------------------------------------------------------------------------


def test_user_with_password_is_authenticated(guarded):
    assert start(guarded.settings())


def test_wrong_password_fails_immediately_and_is_not_shown(guarded, caplog, capfd):
    structlog.configure(logger_factory=structlog.stdlib.LoggerFactory())
    caplog.set_level(logging.DEBUG)
    wrong = "not-the-right-one"
    with pytest.raises(OperatingError, match="invalid user ID or password") as caught:
        start(guarded.settings(password=wrong), startup_timeout_sec=60)
    assert not isinstance(caught.value, StoreUnavailableError)
    out, err = capfd.readouterr()
    for text in (str(caught.value), repr(caught.value), caplog.text, out, err):
        assert wrong not in text


def test_missing_user_is_reported(guarded):
    with pytest.raises(OperatingError, match="requires a user and a password"):
        start(guarded.settings(username="", password=""), startup_timeout_sec=60)


def test_password_without_etcd_authentication_is_ignored(etcd):
    etcd.control("del", "/", "--prefix")
    assert start(etcd.settings(username=USERNAME, password=PASSWORD))


@pytest.mark.parametrize("first", ["get", "commit", "watch", "keep_alive"])
def test_invalid_token_is_renewed(guarded, first):
    """The first request authenticates again, even if it is a write."""

    async def body(store):
        lease = await store.grant(10_000)
        last = (await store.commit([], [Put("/a", b"1", lease)])).revision
        guarded.control("auth", "disable")
        guarded.control("auth", "enable")
        match first:
            case "get":
                assert (await store.get("/a")).value == b"1"
            case "commit":
                assert (await store.commit([], [Put("/a", b"2")])).succeeded
            case "watch":
                commits = store.watch("/a", last - 1)
                assert [event.value for event in await anext(commits)] == [b"1"]
                await commits.aclose()
            case _:
                assert await store.keep_alive(lease)
        await store.revoke(lease)
        await store.commit([], [Put("/a", b"")])

    start(guarded.settings(), then=body)


def test_changed_password_is_read_again(guarded, tmp_path):
    """etcd ends all tokens of a user whose password changes."""
    file = tmp_path / "password"
    file.write_text("first\n")
    guarded.control("user", "add", "broker:first")
    guarded.control("user", "grant-role", "broker", "root")

    async def body(store):
        await store.commit([], [Put("/a", b"1")])
        file.write_text("second\n")
        guarded.control("user", "passwd", "broker", "--interactive=false", text="second")
        assert (await store.get("/a")).value == b"1"

    start(guarded.settings(username="broker", password="", password_file=str(file)), then=body)


def test_missing_permission_is_reported(guarded):
    """Not an outage, but callers see one: a retry may succeed later."""
    guarded.control("user", "add", "guest:guest")

    async def body(store):
        for call in (
            store.get("/a"),
            store.commit([], [Put("/a", b"")]),
            anext(store.watch("/a", 0)),
        ):
            with pytest.raises(StoreUnavailableError, match="permission denied"):
                await call

    with pytest.raises(OperatingError, match="permission denied"):
        start(guarded.settings(username="guest", password="guest"))  # noqa: S106
    guarded.control("role", "add", "greeter")
    guarded.control("role", "grant-permission", "greeter", "read", "/")
    guarded.control("user", "grant-role", "guest", "greeter")
    start(guarded.settings(username="guest", password="guest"), then=body)  # noqa: S106


# --- start ------------------------------------------------------------------------------------


def test_unreachable_etcd_fails_the_start_after_the_timeout():
    place = f"127.0.0.1:{free_port()}"
    with pytest.raises(StoreUnavailableError, match=f"etcd .*{place}.*Connection refused"):
        start(Etcd(endpoints=(place,)), startup_timeout_sec=1)


def test_start_waits_for_etcd(tmp_path):
    with EtcdServer(tmp_path) as server:
        server.members[0].kill()

        async def scenario():
            config = Config(broker=Broker(startup_timeout_sec=15), etcd=server.settings())
            opening = asyncio.ensure_future(open_metadata(config, lambda: 0))
            await asyncio.sleep(0.7)
            assert not opening.done()
            await asyncio.to_thread(server.members[0].start)
            store = await opening
            assert await used(store)
            await store.close()

        asyncio.run(scenario())
