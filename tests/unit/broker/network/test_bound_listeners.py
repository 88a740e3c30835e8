"""Binding listeners: configuration errors stop the start, sockets are bound before they serve."""

import asyncio
import socket
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kafscale.broker.network.bound_listeners import announcements, bind_listeners, describe, serve
from kafscale.broker.network.listener_config import SecurityProtocol
from kafscale.broker.network.server import Server, ServerSettings
from kafscale.broker.requests.context import ShutdownSignal
from kafscale.broker.requests.route import route
from kafscale.config import Config, load
from kafscale.config.sections.broker import Broker
from kafscale.config.sections.security import Sasl, Tls
from kafscale.errors import ConfigError, OperatingError
from kafscale.net.address import Address
from kafscale.observability.metrics.broker import Metrics
from kafscale.protocol.messages.heartbeat import HEARTBEAT
from services.certificates import make_certificates
from services.process import free_port
from unit.broker.acceptor_harness import is_served
from unit.broker.harness import LIMITS, dispatcher, heartbeat_handler, run

SETTINGS = ServerSettings(connections_max=10, limits=LIMITS, sweep_seconds=1000)
BOTH = ("INSIDE://127.0.0.1:0", "OUTSIDE://127.0.0.1:0")


def config(*listeners, protocols=(), **sections):
    return Config(
        broker=Broker(
            host="127.0.0.1", port=0, listeners=listeners, listener_security_protocol_map=protocols
        ),
        **sections,
    )


def secure(directory: Path) -> Tls:
    files = make_certificates(directory)
    return Tls(cert_file=(str(files.server_certificate),), key_file=(str(files.server_key),))


def start_error(settings, kind=ConfigError):
    """The error message of settings that cannot start."""
    output = []

    async def scenario():
        with pytest.raises(kind) as caught:
            async with bind_listeners(settings, SETTINGS):
                pass
        output.append(str(caught.value))

    run(scenario)
    return output[0]


def test_listeners_are_bound_first_and_accept_clients_after_serve(tmp_path):
    async def scenario():
        requested = config(
            *BOTH, protocols=("INSIDE:PLAINTEXT", "OUTSIDE:SSL"), tls=secure(tmp_path)
        )
        async with bind_listeners(requested, SETTINGS) as entries:
            inside, outside = entries
            assert [entry.listener.name for entry in entries] == ["INSIDE", "OUTSIDE"]
            assert inside.tls is None
            assert outside.tls is not None
            assert inside.address != outside.address
            for entry in entries:
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection(entry.address)
            shutdown = ShutdownSignal()
            server = Server(
                dispatcher(route(HEARTBEAT, heartbeat_handler)), SETTINGS, Metrics(), shutdown
            )
            serve(server, entries)
            assert server.addresses == [inside.address, outside.address]
            streams = await asyncio.open_connection(*inside.address)
            assert await is_served(streams)
            streams[1].close()
            await server.drain(1)

    run(scenario)


def test_sockets_are_closed_after_the_block():
    async def scenario():
        async with bind_listeners(config(*BOTH, protocols=_all("PLAINTEXT")), SETTINGS) as entries:
            pass
        assert [bound.fileno() for entry in entries for bound in entry.sockets] == [-1, -1]

    run(scenario)


def test_failure_to_bind_one_listener_closes_all():
    first = free_port()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        requested = config(
            f"INSIDE://127.0.0.1:{first}",
            f"OUTSIDE://127.0.0.1:{port}",
            protocols=_all("PLAINTEXT"),
        )
        assert str(port) in start_error(requested, OperatingError)
    socket.create_server(("127.0.0.1", first)).close()


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_tls_listener_requires_a_certificate(protocol):
    requested = config(
        *BOTH, protocols=_all(protocol), sasl=Sasl(enabled_mechanisms=("SCRAM-SHA-512",))
    )
    assert "tls.certFile" in start_error(requested)


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanisms", [(), ("INSIDE=SCRAM-SHA-256",)])
def test_sasl_listener_requires_an_enabled_mechanism(protocol, mechanisms, tmp_path):
    requested = config(
        *BOTH,
        protocols=("INSIDE:SASL_PLAINTEXT", f"OUTSIDE:{protocol}"),
        sasl=Sasl(enabled_mechanisms=mechanisms),
        tls=secure(tmp_path),
    )
    output = start_error(requested)
    assert "sasl.enabledMechanisms" in output
    assert ("OUTSIDE" if mechanisms else "INSIDE") in output


@pytest.mark.parametrize(
    ("protocol", "mechanisms", "is_told"),
    [
        ("SASL_PLAINTEXT", ("PLAIN",), True),
        ("SASL_PLAINTEXT", ("SCRAM-SHA-512", "OAUTHBEARER"), True),
        ("SASL_PLAINTEXT", ("SCRAM-SHA-512",), False),
        ("SASL_SSL", ("PLAIN",), False),
    ],
)
def test_unencrypted_passwords_and_tokens_are_warned_of(protocol, mechanisms, is_told, tmp_path):
    async def scenario():
        requested = config(
            BOTH[0],
            protocols=_all(protocol),
            sasl=Sasl(enabled_mechanisms=mechanisms),
            tls=secure(tmp_path),
        )
        async with bind_listeners(requested, SETTINGS):
            pass

    with capture_logs() as logs:
        run(scenario)
    expected = ["passwords or tokens are sent unencrypted"] if is_told else []
    assert [event["event"] for event in logs] == expected


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({}, 1),
        ({"KAFSCALE_BROKER_ADDR": ":0"}, 0),
        ({"KAFSCALE_BROKER_LISTENERS": "PLAINTEXT://127.0.0.1:0"}, 0),
    ],
)
def test_broker_says_how_to_open_its_default_to_the_network(settings, count):
    lines = list(announcements(load({"KAFSCALE_BROKER_PORT": "0"} | settings), []))
    assert len(lines) == count
    assert all("KAFSCALE_BROKER_ADDR=:0" in line for line in lines)


def test_describe_prints_address_and_protocol():
    lines = []

    async def scenario():
        requested = config(
            *BOTH,
            protocols=("INSIDE:PLAINTEXT", "OUTSIDE:SASL_PLAINTEXT"),
            sasl=Sasl(enabled_mechanisms=("SCRAM-SHA-512",)),
        )
        async with bind_listeners(requested, SETTINGS) as (inside, outside):
            assert outside.listener.protocol is SecurityProtocol.SASL_PLAINTEXT
            lines.append(describe(inside, Address("10.0.0.1", 9092)))
            lines.append(describe(outside, Address("::1", 9094)))

    run(scenario)
    assert lines == [
        "broker listening on 10.0.0.1:9092",
        "broker listening on [::1]:9094 (SASL_PLAINTEXT)",
    ]


def _all(protocol):
    return (f"INSIDE:{protocol}", f"OUTSIDE:{protocol}")
