"""Where clients arrive who are to encrypt, with real sockets and TLS, on both event loops."""

import shutil
import socket
import ssl
from contextlib import suppress
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from kafscale.broker.network.connection_quotas import Door
from services.certificates import make_certificates
from unit.broker.harness import LIMITS, heartbeat, run
from unit.broker.reception_stage import (
    HOST,
    Desk,
    desk,
    is_sent_away,
    is_served,
    on_both_loops,
    tls_of,
    trust,
    until,
)

HASTY = replace(LIMITS, first_request_seconds=0.1)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@on_both_loops
@pytest.mark.parametrize("door", [Door(2), Door(10, per_host_max=2)], ids=["all", "of an address"])
def test_limits_hold_for_those_who_only_begin_to_encrypt(loop, door, files):
    async def story():
        async with desk(door, tls_of(files)) as found:
            half = [found.call() for _ in range(2)]
            half[0].sendall(bytes.fromhex("16 03 01 02"))  # The first bytes of a hello.
            await found.until_inside(2)
            assert await is_sent_away(await found.connect())
            assert (found.door.count, found.traffic.refused) == (2, 1)
            for caller in half:
                caller.close()
            await found.until_inside(0)
            streams = await found.connect(trust(files))
            assert await is_served(streams), "a place that is free again is given again"
            streams[1].close()

    with capture_logs():
        run(story, loop)


@on_both_loops
def test_who_never_encrypts_loses_their_place(loop, files):
    async def story():
        async with desk(Door(10), tls_of(files), limits=HASTY) as found:
            silent, half = found.call(), found.call()
            half.sendall(bytes.fromhex("16 03 01 02 00 01 00"))
            await found.until_inside(2)
            await found.until_inside(0)
            assert found.traffic.handshakes_failed == 2
            assert found.connections == []
            for caller in (silent, half):
                with suppress(ConnectionResetError):
                    assert caller.recv(1) == b""
                caller.close()

    with capture_logs() as logs:
        run(story, loop)
    assert {event["event"] for event in logs} == {"connection failed before its first request"}
    assert {(event["client"], event["listener"]) for event in logs} == {(HOST, "SECURE")}


@on_both_loops
@pytest.mark.parametrize(
    "said",
    [
        heartbeat(1),
        b"GET / HTTP/1.1\r\n\r\n",
        bytes(500),
        bytes.fromhex("16 03 01 00 05") + b"hello",
    ],
    ids=["Kafka", "HTTP", "nothing", "no hello"],
)
def test_what_is_not_tls_is_sent_away(loop, said, files):
    async def story():
        async with desk(Door(10), tls_of(files)) as found:
            reader, writer = await found.connect()
            writer.write(said)
            with suppress(ConnectionError):
                await reader.read()  # There may be an alert.
            writer.close()
            await found.until_inside(0)
            assert found.traffic.handshakes_failed == 1

    with capture_logs() as logs:
        run(story, loop)
    [event] = logs
    assert event["reason"]


@on_both_loops
def test_who_leaves_while_encrypting_leaves_nothing_behind(loop, files):
    async def story():
        async with desk(Door(10), tls_of(files)) as found:
            for linger in (None, bytes(8), b"\1\0\0\0\0\0\0\0"):
                caller = found.call()
                caller.sendall(bytes.fromhex("16 03 01"))
                await found.until_inside(1)
                if linger is not None:  # The last one of these resets the connection.
                    caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                caller.close()
                await found.until_inside(0)
            assert found.connections == []

    with capture_logs():
        run(story, loop)


@on_both_loops
def test_without_the_certificate_that_is_asked_for_nobody_comes_in(loop, files):
    async def story():
        async with desk(Door(10), tls_of(files, "required")) as found:
            assert await is_sent_away(await found.connect(trust(files)))
            await found.until_inside(0)
            assert found.traffic.handshakes_failed == 1
            streams = await found.connect(trust(files, shows_certificate=True))
            assert await is_served(streams)
            [connection] = found.connections
            assert connection.client.identity.full_name.startswith("User:")
            assert "ANONYMOUS" not in connection.client.identity.full_name
            streams[1].close()

    with capture_logs():
        run(story, loop)


@on_both_loops
def test_a_flood_of_failures_becomes_a_few_lines(loop, files):
    async def story():
        async with desk(Door(100), tls_of(files)) as found:
            callers = [found.call() for _ in range(60)]
            for caller in callers:
                caller.sendall(b"no hello at all")
            await until(lambda: found.traffic.handshakes_failed == len(callers))
            for caller in callers:
                caller.close()

    with capture_logs() as logs:
        run(story, loop)
    assert len(logs) <= 30
    assert len(logs) + logs[-1]["suppressed"] <= 60


@on_both_loops
def test_a_new_certificate_is_for_the_next_one_who_comes(loop, tmp_path):
    async def story():
        former = make_certificates(tmp_path / "former", name="former")
        renewed = make_certificates(tmp_path / "renewed", name="renewed")
        tls = tls_of(former)
        async with desk(Door(10), tls) as found:
            old_trust = trust(former)
            first = await found.connect(old_trust)
            assert await is_served(first)
            shutil.copy(renewed.server_certificate, former.server_certificate)
            shutil.copy(renewed.server_key, former.server_key)
            assert tls.refresh()
            with pytest.raises(ssl.SSLCertVerificationError):
                await found.connect(old_trust)
            second = await found.connect(trust(renewed))
            assert await is_served(second)
            assert await is_served(first), "nobody is sent away for it"
            first[1].close()
            second[1].close()

    with capture_logs():
        run(story, loop)


@on_both_loops
def test_after_the_close_nobody_is_accepted_and_who_was_not_in_yet_is_sent_away(loop, files):
    async def story():
        found = Desk(Door(10), tls_of(files))
        found.reception.open()
        half = found.call()
        await found.until_inside(1)
        found.reception.close()
        await found.until_inside(0)
        with suppress(ConnectionResetError):
            assert half.recv(1) == b""
        half.close()
        with pytest.raises(ConnectionRefusedError):
            found.call()

    run(story, loop)
