"""The acceptor of a TLS listener, with real sockets, on both event loops."""

import shutil
import socket
import ssl
from contextlib import suppress
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from kafscale.broker.network.connection_quotas import ConnectionQuotas
from services.certificates import make_certificates
from unit.broker.acceptor_harness import (
    HOST,
    AcceptorHarness,
    client_tls,
    is_closed_by_server,
    is_served,
    listener_tls,
    on_both_loops,
    open_acceptor,
    until,
)
from unit.broker.harness import LIMITS, heartbeat, run

SHORT_LIMITS = replace(LIMITS, first_request_seconds=0.1)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@on_both_loops
def test_oldest_unfinished_tls_handshake_makes_room_for_another_client(loop, files):
    async def scenario():
        async with open_acceptor(ConnectionQuotas(2), listener_tls(files)) as harness:
            half = [harness.connect_socket() for _ in range(2)]
            half[0].sendall(bytes.fromhex("16 03 01 02"))  # The first bytes of a ClientHello.
            await harness.until_count(2)
            streams = await harness.connect(client_tls(files))
            assert await is_served(streams)
            assert (harness.quotas.count, harness.counters.refused) == (2, 1)
            streams[1].close()
            for client in half:
                client.close()
            await harness.until_count(0)

    with capture_logs():
        run(scenario, loop)


@on_both_loops
def test_connection_limits_include_unfinished_tls_handshakes(loop, files):
    async def scenario():
        quotas = ConnectionQuotas(10, per_host_max=2)
        async with open_acceptor(quotas, listener_tls(files)) as harness:
            half = [harness.connect_socket() for _ in range(2)]
            half[0].sendall(bytes.fromhex("16 03 01 02"))  # The first bytes of a ClientHello.
            await harness.until_count(2)
            assert await is_closed_by_server(await harness.connect())
            assert (harness.quotas.count, harness.counters.refused) == (2, 1)
            for client in half:
                client.close()
            await harness.until_count(0)
            streams = await harness.connect(client_tls(files))
            assert await is_served(streams), "a released connection can be used again"
            streams[1].close()

    with capture_logs():
        run(scenario, loop)


@on_both_loops
def test_tls_handshake_timeout_releases_the_connection(loop, files):
    async def scenario():
        async with open_acceptor(
            ConnectionQuotas(10), listener_tls(files), limits=SHORT_LIMITS
        ) as harness:
            silent, half = harness.connect_socket(), harness.connect_socket()
            half.sendall(bytes.fromhex("16 03 01 02 00 01 00"))
            await harness.until_count(2)
            await harness.until_count(0)
            assert harness.counters.handshakes_failed == 2
            assert harness.connections == []
            for client in (silent, half):
                with suppress(ConnectionResetError):
                    assert client.recv(1) == b""
                client.close()

    with capture_logs() as logs:
        run(scenario, loop)
    assert {event["event"] for event in logs} == {"connection failed before its first request"}
    assert {(event["client"], event["listener"]) for event in logs} == {(HOST, "SECURE")}


@on_both_loops
@pytest.mark.parametrize(
    "data",
    [
        heartbeat(1),
        b"GET / HTTP/1.1\r\n\r\n",
        bytes(500),
        bytes.fromhex("16 03 01 00 05") + b"hello",
    ],
    ids=["Kafka", "HTTP", "zeros", "no hello"],
)
def test_acceptor_closes_connections_that_do_not_speak_tls(loop, data, files):
    async def scenario():
        async with open_acceptor(ConnectionQuotas(10), listener_tls(files)) as harness:
            reader, writer = await harness.connect()
            writer.write(data)
            with suppress(ConnectionError):
                await reader.read()  # There may be an alert.
            writer.close()
            await harness.until_count(0)
            assert harness.counters.handshakes_failed == 1

    with capture_logs() as logs:
        run(scenario, loop)
    [event] = logs
    assert event["reason"]


@on_both_loops
def test_disconnect_during_tls_handshake_releases_the_connection(loop, files):
    async def scenario():
        async with open_acceptor(ConnectionQuotas(10), listener_tls(files)) as harness:
            for linger in (None, bytes(8), b"\1\0\0\0\0\0\0\0"):
                client = harness.connect_socket()
                client.sendall(bytes.fromhex("16 03 01"))
                await harness.until_count(1)
                if linger is not None:  # The last one of these resets the connection.
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                client.close()
                await harness.until_count(0)
            assert harness.connections == []

    with capture_logs():
        run(scenario, loop)


@on_both_loops
def test_required_client_certificate_is_enforced(loop, files):
    async def scenario():
        async with open_acceptor(ConnectionQuotas(10), listener_tls(files, "required")) as harness:
            assert await is_closed_by_server(await harness.connect(client_tls(files)))
            await harness.until_count(0)
            assert harness.counters.handshakes_failed == 1
            streams = await harness.connect(client_tls(files, with_certificate=True))
            assert await is_served(streams)
            [connection] = harness.connections
            assert connection.client.principal.full_name.startswith("User:")
            assert "ANONYMOUS" not in connection.client.principal.full_name
            streams[1].close()

    with capture_logs():
        run(scenario, loop)


@on_both_loops
def test_handshake_failures_are_logged_at_a_limited_rate(loop, files):
    async def scenario():
        async with open_acceptor(ConnectionQuotas(100), listener_tls(files)) as harness:
            clients = [harness.connect_socket() for _ in range(60)]
            for client in clients:
                client.sendall(b"no hello at all")
            await until(lambda: harness.counters.handshakes_failed == len(clients))
            for client in clients:
                client.close()

    with capture_logs() as logs:
        run(scenario, loop)
    assert len(logs) <= 30
    assert len(logs) + logs[-1]["suppressed"] <= 60


@on_both_loops
def test_reloaded_certificate_applies_to_new_connections_only(loop, tmp_path):
    async def scenario():
        former = make_certificates(tmp_path / "former", name="former")
        renewed = make_certificates(tmp_path / "renewed", name="renewed")
        tls = listener_tls(former)
        async with open_acceptor(ConnectionQuotas(10), tls) as harness:
            old_tls = client_tls(former)
            first = await harness.connect(old_tls)
            assert await is_served(first)
            shutil.copy(renewed.server_certificate, former.server_certificate)
            shutil.copy(renewed.server_key, former.server_key)
            assert tls.refresh()
            with pytest.raises(ssl.SSLCertVerificationError):
                await harness.connect(old_tls)
            second = await harness.connect(client_tls(renewed))
            assert await is_served(second)
            assert await is_served(first), "established connections stay open"
            first[1].close()
            second[1].close()

    with capture_logs():
        run(scenario, loop)


@on_both_loops
def test_acceptor_close_ends_tls_handshakes_and_refuses_new_connections(loop, files):
    async def scenario():
        harness = AcceptorHarness(ConnectionQuotas(10), listener_tls(files))
        harness.acceptor.open()
        half = harness.connect_socket()
        await harness.until_count(1)
        harness.acceptor.close()
        await harness.until_count(0)
        with suppress(ConnectionResetError):
            assert half.recv(1) == b""
        half.close()
        with pytest.raises(ConnectionRefusedError):
            harness.connect_socket()

    run(scenario, loop)
