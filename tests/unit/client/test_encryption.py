"""TLS between a client and a server on this machine, and what is told when they do not agree."""

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
from kafscale.net.host_port import Address
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest
from services.certificates import make_certificates
from unit.client.gatekeeper import Gatekeeper


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("others"), name="CA of somebody else")


def server(certificates, *, asks=False, version=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server_certificate, certificates.server_key)
    if asks:
        context.load_verify_locations(certificates.authority)
        context.verify_mode = ssl.CERT_REQUIRED
    if version is not None:
        context.maximum_version = version
    return context


def trusting(certificates, *, shows=None, protocol="SSL", **options):
    shown = (
        {}
        if shows is None
        else {"cert_file": str(shows.client_certificate), "key_file": str(shows.client_key)}
    )
    tls = ClientTls(ca_file=str(certificates.authority), **shown, **options)
    return Security(protocol=protocol, mechanism="PLAIN", username="a", password="b", tls=tls)  # noqa: S106


def talk(gatekeeper, security, host="127.0.0.1"):
    async def story():
        async with gatekeeper:
            address = Address(host, gatekeeper.address.port)
            connection = await Connection.open(address, security)
            answer = await connection.ask(METADATA, MetadataRequest())
            await connection.end()
            assert connection.has_ended
            return answer.cluster_id

    return asyncio.run(story())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_both_sides_understand_each_other(ours, host):
    assert talk(Gatekeeper(context=server(ours)), trusting(ours), host) == "it"


def test_one_may_log_in_over_tls(ours):
    sasl = Sasl(enabled_mechanisms=("PLAIN",), plain_users="a:b")
    security = trusting(ours, protocol="SASL_SSL")
    assert talk(Gatekeeper(sasl, context=server(ours)), security) == "it"


def test_a_certificate_is_shown_to_who_asks_for_one(ours):
    gatekeeper = Gatekeeper(context=server(ours, asks=True))
    assert talk(gatekeeper, trusting(ours, shows=ours)) == "it"


def test_a_server_that_nobody_trusts_is_left_with_what_to_set(ours, others):
    with pytest.raises(AuthenticationError, match=r"not trusted: .*; set client\.tls\.caFile"):
        talk(Gatekeeper(context=server(ours)), trusting(others))


def test_without_a_file_the_authorities_of_the_system_decide(ours):
    with pytest.raises(AuthenticationError, match=r"set client\.tls\.caFile"):
        talk(Gatekeeper(context=server(ours)), Security(protocol="SSL"))


def test_a_certificate_for_another_name_is_refused_unless_names_do_not_matter(ours):
    elsewhere = {"context": server(ours), "host": "127.0.0.2"}
    with pytest.raises(AuthenticationError, match=r"for another name: .*client\.tls\.checkHost"):
        talk(Gatekeeper(**elsewhere), trusting(ours), "127.0.0.2")
    assert talk(Gatekeeper(**elsewhere), trusting(ours, check_host=False), "127.0.0.2") == "it"


@pytest.fixture(params=[ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def asking(request, ours):
    """A server that wants certificates; with TLS 1.3 the client learns of it when it is through."""
    return server(ours, asks=True, version=request.param)


def refused(context, security):
    """What is told by a server that says what it does not like."""
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as threads:
        refusing = threads.submit(refuse, listening, context)
        address = Address("127.0.0.1", listening.getsockname()[1])
        try:
            asyncio.run(Connection.open(address, security))
        finally:
            refusing.result()


def refuse(listening, context):
    accepted, _ = listening.accept()
    with context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False) as client:
        with pytest.raises(ssl.SSLError):
            client.do_handshake()
        # What came meanwhile is read, or else the system would reset the connection.
        socket.socket.shutdown(client, socket.SHUT_WR)
        while socket.socket.recv(client, 4096):
            pass


def test_who_shows_no_certificate_where_one_has_to_is_told(ours, asking):
    with pytest.raises(AuthenticationError, match=r"does not accept us: .*client\.tls\.certFile"):
        refused(asking, trusting(ours))


def test_a_certificate_of_a_stranger_is_told(ours, others, asking):
    with pytest.raises(AuthenticationError, match=r"does not accept us: .*look at who issued .*"):
        refused(asking, trusting(ours, shows=others))


def test_a_server_that_leaves_without_a_word_may_want_a_certificate(ours, others, asking):
    with pytest.raises(
        UnreachableError, match=r"asks for a certificate, set client\.tls\.certFile"
    ):
        talk(Gatekeeper(context=asking), trusting(ours))
    with pytest.raises(UnreachableError, match=r"look at who issued .*client"):
        talk(Gatekeeper(context=asking), trusting(ours, shows=others))


def test_a_server_without_tls_is_told_with_what_to_set(ours):
    with pytest.raises(UnreachableError, match=r"if it does not speak it, .* to PLAINTEXT"):
        talk(Gatekeeper(), trusting(ours))
    with pytest.raises(UnreachableError, match=r"if it does not speak it, .* to SASL_PLAINTEXT"):
        talk(Gatekeeper(), trusting(ours, protocol="SASL_SSL"))


def test_a_server_of_another_kind_is_told(ours):
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

    async def story(security):
        async with web() as address:
            await Connection.open(address, security)

    with pytest.raises(UnreachableError, match="does not go on with TLS"):
        asyncio.run(story(trusting(ours)))
    with pytest.raises(UnreachableError, match="does not speak Kafka"):
        asyncio.run(story(PLAINTEXT))


def test_who_does_not_encrypt_where_one_has_to_is_told(ours):
    with pytest.raises(UnreachableError, match=r"if it speaks TLS, set .* to SSL"):
        talk(Gatekeeper(context=server(ours)), PLAINTEXT)


def test_files_that_are_of_no_use_are_told_with_their_setting(ours, tmp_path):
    absent = Security(protocol="SSL", tls=ClientTls(ca_file=str(tmp_path / "absent")))
    with pytest.raises(ConfigError, match=r"client\.tls\.caFile"):
        talk(Gatekeeper(context=server(ours)), absent)
