"""TLS connections to a local server, and the errors when the handshake fails."""

import asyncio
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest

from kafscale.client.connection import Connection
from kafscale.client.errors import UnreachableError
from kafscale.client.security import PLAINTEXT, Security
from kafscale.config.sections.security import ClientTls, Sasl
from kafscale.errors import AuthenticationError, ConfigError
from kafscale.net.address import Address
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest
from services.certificates import make_certificates
from unit.client.authenticating_broker import AuthenticatingBroker


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def other_certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("others"), name="another CA")


def server(certificates, *, requires_client_certificate=False, version=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server_certificate, certificates.server_key)
    if requires_client_certificate:
        context.load_verify_locations(certificates.authority)
        context.verify_mode = ssl.CERT_REQUIRED
    if version is not None:
        context.maximum_version = version
    return context


def security_trusting(certificates, *, client_files=None, protocol="SSL", **options):
    files = (
        {}
        if client_files is None
        else {
            "cert_file": str(client_files.client_certificate),
            "key_file": str(client_files.client_key),
        }
    )
    tls = ClientTls(ca_file=str(certificates.authority), **files, **options)
    return Security(protocol=protocol, mechanism="PLAIN", username="a", password="b", tls=tls)  # noqa: S106


def connect(broker, security, host="127.0.0.1"):
    async def scenario():
        async with broker:
            address = Address(host, broker.address.port)
            connection = await Connection.open(address, security)
            response = await connection.ask(METADATA, MetadataRequest())
            await connection.aclose()
            assert connection.is_closed
            return response.cluster_id

    return asyncio.run(scenario())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_tls_connection(certificates, host):
    assert (
        connect(
            AuthenticatingBroker(context=server(certificates)),
            security_trusting(certificates),
            host,
        )
        == "it"
    )


def test_sasl_over_tls(certificates):
    sasl = Sasl(enabled_mechanisms=("PLAIN",), plain_users="a:b")
    security = security_trusting(certificates, protocol="SASL_SSL")
    assert connect(AuthenticatingBroker(sasl, context=server(certificates)), security) == "it"


def test_client_certificate_is_sent(certificates):
    broker = AuthenticatingBroker(context=server(certificates, requires_client_certificate=True))
    assert connect(broker, security_trusting(certificates, client_files=certificates)) == "it"


def test_untrusted_server_is_reported_with_its_setting(certificates, other_certificates):
    with pytest.raises(AuthenticationError, match=r"not trusted: .*; set client\.tls\.caFile"):
        connect(
            AuthenticatingBroker(context=server(certificates)),
            security_trusting(other_certificates),
        )


def test_system_cas_are_used_without_a_ca_file(certificates):
    with pytest.raises(AuthenticationError, match=r"set client\.tls\.caFile"):
        connect(AuthenticatingBroker(context=server(certificates)), Security(protocol="SSL"))


def test_host_name_of_certificate_is_checked(certificates):
    elsewhere = {"context": server(certificates), "host": "127.0.0.2"}
    with pytest.raises(
        AuthenticationError, match=r"for another host: .*client\.tls\.verifyHostname"
    ):
        connect(AuthenticatingBroker(**elsewhere), security_trusting(certificates), "127.0.0.2")
    assert (
        connect(
            AuthenticatingBroker(**elsewhere),
            security_trusting(certificates, verify_hostname=False),
            "127.0.0.2",
        )
        == "it"
    )


@pytest.fixture(params=[ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def requiring_context(request, certificates):
    """A server that requires certificates; with TLS 1.3, clients fail after the handshake."""
    return server(certificates, requires_client_certificate=True, version=request.param)


def connect_to_rejecting_server(context, security):
    """Connect to a server that sends a TLS alert."""
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as threads:
        rejecting = threads.submit(reject, listening, context)
        address = Address("127.0.0.1", listening.getsockname()[1])
        try:
            asyncio.run(Connection.open(address, security))
        finally:
            rejecting.result()


def reject(listening, context):
    accepted, _ = listening.accept()
    with context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False) as client:
        with pytest.raises(ssl.SSLError):
            client.do_handshake()
        # Unread data would make the system reset the connection.
        socket.socket.shutdown(client, socket.SHUT_WR)
        while socket.socket.recv(client, 4096):
            pass


def test_missing_client_certificate_is_reported(certificates, requiring_context):
    with pytest.raises(AuthenticationError, match=r"rejected the client: .*client\.tls\.certFile"):
        connect_to_rejecting_server(requiring_context, security_trusting(certificates))


def test_untrusted_client_certificate_is_reported(
    certificates, other_certificates, requiring_context
):
    with pytest.raises(AuthenticationError, match=r"rejected the client: .*check the issuer .*"):
        connect_to_rejecting_server(
            requiring_context, security_trusting(certificates, client_files=other_certificates)
        )


def test_early_disconnect_hints_at_client_certificates(
    certificates, other_certificates, requiring_context
):
    with pytest.raises(
        UnreachableError, match=r"requires a client certificate, set client\.tls\.certFile"
    ):
        connect(AuthenticatingBroker(context=requiring_context), security_trusting(certificates))
    with pytest.raises(UnreachableError, match=r"check the issuer .*client"):
        connect(
            AuthenticatingBroker(context=requiring_context),
            security_trusting(certificates, client_files=other_certificates),
        )


def test_server_without_tls_is_reported(certificates):
    with pytest.raises(UnreachableError, match=r"if it does not use TLS, .* to PLAINTEXT"):
        connect(AuthenticatingBroker(), security_trusting(certificates))
    with pytest.raises(UnreachableError, match=r"if it does not use TLS, .* to SASL_PLAINTEXT"):
        connect(AuthenticatingBroker(), security_trusting(certificates, protocol="SASL_SSL"))


def test_http_server_is_reported(certificates):
    @asynccontextmanager
    async def web():
        async def serve(_reader, writer):
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        listening = await asyncio.start_server(serve, "127.0.0.1", 0)
        try:
            yield Address("127.0.0.1", listening.sockets[0].getsockname()[1])
        finally:
            listening.close()

    async def scenario(security):
        async with web() as address:
            await Connection.open(address, security)

    with pytest.raises(UnreachableError, match=r"the TLS handshake with .* failed"):
        asyncio.run(scenario(security_trusting(certificates)))
    with pytest.raises(UnreachableError, match="does not use the Kafka protocol"):
        asyncio.run(scenario(PLAINTEXT))


def test_server_with_tls_is_reported_to_a_plaintext_client(certificates):
    with pytest.raises(UnreachableError, match=r"if it uses TLS, set .* to SSL"):
        connect(AuthenticatingBroker(context=server(certificates)), PLAINTEXT)


def test_missing_ca_file_is_reported_with_its_setting(certificates, tmp_path):
    absent = Security(protocol="SSL", tls=ClientTls(ca_file=str(tmp_path / "absent")))
    with pytest.raises(ConfigError, match=r"client\.tls\.caFile"):
        connect(AuthenticatingBroker(context=server(certificates)), absent)
