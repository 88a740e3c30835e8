"""The ways in: what cannot work stops the start, what can is bound before it serves."""

import asyncio
import socket
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kafscale.broker.network.bound_listeners import announcement, open_entries, serve
from kafscale.broker.network.listener_config import Protocol
from kafscale.broker.network.server import Server, Settings
from kafscale.broker.requests.context import Drain
from kafscale.broker.requests.route import route
from kafscale.config import Config
from kafscale.config.sections.broker import Broker
from kafscale.config.sections.security import Sasl, Tls
from kafscale.errors import ConfigError, OperatingError
from kafscale.observability.metrics.broker import Metrics
from kafscale.protocol.messages.heartbeat import HEARTBEAT
from services.certificates import make_certificates
from services.process import free_port
from unit.broker.harness import LIMITS, beat, dispatcher, run
from unit.broker.reception_stage import is_served

SETTINGS = Settings(connections_max=10, limits=LIMITS, sweep_seconds=1000)
BOTH = ("INSIDE://127.0.0.1:0", "OUTSIDE://127.0.0.1:0")


def config(*listeners, protocols=(), **rooms):
    return Config(
        broker=Broker(
            host="127.0.0.1", port=0, listeners=listeners, listener_security_protocol_map=protocols
        ),
        **rooms,
    )


def secure(directory: Path) -> Tls:
    files = make_certificates(directory)
    return Tls(cert_file=(str(files.server_certificate),), key_file=(str(files.server_key),))


def refusal(settings, kind=ConfigError):
    """What is said of settings with which nothing starts."""
    said = []

    async def story():
        with pytest.raises(kind) as caught:
            async with open_entries(settings, SETTINGS):
                pass
        said.append(str(caught.value))

    run(story)
    return said[0]


def test_every_listener_is_bound_and_serves_only_when_it_is_told_to(tmp_path):
    async def story():
        asked = config(*BOTH, protocols=("INSIDE:PLAINTEXT", "OUTSIDE:SSL"), tls=secure(tmp_path))
        async with open_entries(asked, SETTINGS) as entries:
            inside, outside = entries
            assert [entry.listener.name for entry in entries] == ["INSIDE", "OUTSIDE"]
            assert inside.tls is None
            assert outside.tls is not None
            assert inside.address != outside.address
            for entry in entries:
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection(entry.address)
            drain = Drain()
            server = Server(dispatcher(route(HEARTBEAT, beat)), SETTINGS, Metrics(), drain)
            serve(server, entries)
            assert server.addresses == [inside.address, outside.address]
            streams = await asyncio.open_connection(*inside.address)
            assert await is_served(streams)
            streams[1].close()
            await server.drain(1)

    run(story)


def test_after_the_block_nothing_is_bound_any_more():
    async def story():
        async with open_entries(config(*BOTH, protocols=_all("PLAINTEXT")), SETTINGS) as entries:
            pass
        assert [bound.fileno() for entry in entries for bound in entry.sockets] == [-1, -1]

    run(story)


def test_where_the_last_listener_cannot_be_bound_none_is():
    first = free_port()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        asked = config(
            f"INSIDE://127.0.0.1:{first}",
            f"OUTSIDE://127.0.0.1:{port}",
            protocols=_all("PLAINTEXT"),
        )
        assert str(port) in refusal(asked, OperatingError)
    socket.create_server(("127.0.0.1", first)).close()


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_a_listener_that_encrypts_needs_a_certificate(protocol):
    asked = config(
        *BOTH, protocols=_all(protocol), sasl=Sasl(enabled_mechanisms=("SCRAM-SHA-512",))
    )
    assert "tls.certFile" in refusal(asked)


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanisms", [(), ("INSIDE=SCRAM-SHA-256",)])
def test_a_listener_at_which_nobody_could_log_in_is_refused(protocol, mechanisms, tmp_path):
    asked = config(
        *BOTH,
        protocols=("INSIDE:SASL_PLAINTEXT", f"OUTSIDE:{protocol}"),
        sasl=Sasl(enabled_mechanisms=mechanisms),
        tls=secure(tmp_path),
    )
    said = refusal(asked)
    assert "sasl.enabledMechanisms" in said
    assert ("OUTSIDE" if mechanisms else "INSIDE") in said


@pytest.mark.parametrize(
    ("protocol", "mechanisms", "is_told"),
    [
        ("SASL_PLAINTEXT", ("PLAIN",), True),
        ("SASL_PLAINTEXT", ("SCRAM-SHA-512", "OAUTHBEARER"), True),
        ("SASL_PLAINTEXT", ("SCRAM-SHA-512",), False),
        ("SASL_SSL", ("PLAIN",), False),
    ],
)
def test_secrets_in_the_clear_are_warned_of(protocol, mechanisms, is_told, tmp_path):
    async def story():
        asked = config(
            BOTH[0],
            protocols=_all(protocol),
            sasl=Sasl(enabled_mechanisms=mechanisms),
            tls=secure(tmp_path),
        )
        async with open_entries(asked, SETTINGS):
            pass

    with capture_logs() as logs:
        run(story)
    expected = ["passwords or tokens travel in the clear"] if is_told else []
    assert [event["event"] for event in logs] == expected


def test_people_are_told_where_and_how_clients_are_served():
    told = []

    async def story():
        asked = config(
            *BOTH,
            protocols=("INSIDE:PLAINTEXT", "OUTSIDE:SASL_PLAINTEXT"),
            sasl=Sasl(enabled_mechanisms=("SCRAM-SHA-512",)),
        )
        async with open_entries(asked, SETTINGS) as (inside, outside):
            assert outside.listener.protocol is Protocol.SASL_PLAINTEXT
            told.append(announcement(inside, ("10.0.0.1", 9092)))
            told.append(announcement(outside, ("::1", 9094)))

    run(story)
    assert told == [
        "broker listening on 10.0.0.1:9092",
        "broker listening on [::1]:9094 (SASL_PLAINTEXT)",
    ]


def _all(protocol):
    return (f"INSIDE:{protocol}", f"OUTSIDE:{protocol}")
