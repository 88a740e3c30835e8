"""The acceptor, with real sockets, on both event loops."""

import asyncio
import errno
import gc
from contextlib import suppress
from itertools import pairwise

from structlog.testing import capture_logs

from kafscale.broker.network.acceptor import ACCEPTS_PER_ITERATION
from kafscale.broker.network.connection import Connection
from kafscale.broker.network.connection_quotas import ConnectionQuotas
from unit.broker.acceptor_harness import (
    AcceptorHarness,
    is_closed_by_server,
    is_served,
    on_both_loops,
    open_acceptor,
    until,
)
from unit.broker.harness import heartbeat, run, run_pending


@on_both_loops
def test_acceptor_counts_connections_until_they_close(loop):
    async def scenario():
        async with open_acceptor(ConnectionQuotas(10)) as harness:
            first, second = await harness.connect(), await harness.connect()
            assert await is_served(first)
            assert await is_served(second)
            assert harness.quotas.count == 2
            first[1].close()
            await harness.until_count(1)
            assert await is_served(second)
            second[1].close()

    run(scenario, loop)


@on_both_loops
def test_acceptor_accepts_few_connections_per_loop_iteration(loop):
    async def scenario():
        async with open_acceptor(ConnectionQuotas(100)) as harness:
            clients = [harness.connect_socket() for _ in range(5 * ACCEPTS_PER_ITERATION)]
            counts = [harness.quotas.count]
            while harness.quotas.count < len(clients):
                await run_pending(1)
                counts.append(harness.quotas.count)
            await until(lambda: not harness.acceptor._handshakes)
            assert (
                max(after - before for before, after in pairwise(counts)) <= ACCEPTS_PER_ITERATION
            )
            for client in clients:
                client.close()

    run(scenario, loop)


@on_both_loops
def test_acceptor_pauses_above_the_connection_rate(loop):
    waits = [0.0, 0.0, 0.3]

    class Slow(ConnectionQuotas):
        def wait_seconds(self, _now):
            return waits.pop(0) if waits else 0.0

    async def scenario():
        async with open_acceptor(Slow(100)) as harness:
            clients = [harness.connect_socket() for _ in range(3)]
            await harness.until_count(2)
            await run_pending(20)
            assert harness.quotas.count == 2
            await harness.until_count(3)
            for client in clients:
                client.close()

    run(scenario, loop)


@on_both_loops
def test_acceptor_consumes_one_token_per_connection(loop):
    async def scenario():
        now = asyncio.get_running_loop().time()
        async with open_acceptor(ConnectionQuotas(100, rate_max=2)) as harness:
            for _ in range(2):
                streams = await harness.connect()
                assert await is_served(streams)
                streams[1].close()
            assert asyncio.get_running_loop().time() - now < 0.4

    run(scenario, loop)


class Exhausted:
    """A listening socket without a free file descriptor, at first."""

    def __init__(self, listening):
        self._listening = listening
        self.failures = 1

    def accept(self):
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._listening.accept()

    def fileno(self):
        return self._listening.fileno()

    def close(self):
        self._listening.close()


@on_both_loops
def test_acceptor_pauses_while_no_file_descriptor_is_free(loop):
    async def scenario():
        async with open_acceptor(ConnectionQuotas(10), wrap=Exhausted) as harness:
            streams = await harness.connect()
            assert await is_served(streams)
            streams[1].close()

    with capture_logs() as logs:
        run(scenario, loop)
    assert [event["event"] for event in logs] == ["accepting connections paused"]


@on_both_loops
def test_acceptor_closes_throttled_connections_after_the_delay(loop):
    async def scenario():
        async with open_acceptor(ConnectionQuotas(10), delay_ms=30) as harness:
            streams = await harness.connect()
            streams[1].write(heartbeat(1))
            await harness.until_count(1)
            assert await is_closed_by_server(streams)
            await harness.until_count(0)
            assert (harness.counters.refused, harness.connections) == (1, [])

    run(scenario, loop)


@on_both_loops
def test_acceptor_closed_during_a_pause_stays_closed(loop):
    async def scenario():
        harness = AcceptorHarness(ConnectionQuotas(10), wrap=Exhausted)
        harness.acceptor.open()
        client = harness.connect_socket()
        await until(lambda: not harness.listening.failures)
        harness.acceptor.close()
        await asyncio.sleep(0.25)
        assert harness.quotas.count == 0
        client.close()

    with capture_logs():
        run(scenario, loop)


@on_both_loops
def test_acceptor_close_closes_sockets_accepted_in_the_same_iteration(loop):
    async def scenario():
        harness = AcceptorHarness(ConnectionQuotas(10))
        client = harness.connect_socket()
        harness.acceptor._accept()
        assert harness.quotas.count == 1
        harness.acceptor.close()
        await harness.until_count(0)
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""
        client.close()

    run(scenario, loop)


@on_both_loops
def test_closed_connections_leave_no_reference_cycles(loop):
    """Collecting reference cycles of many clients would stop all others for a while."""

    async def scenario():
        async with open_acceptor(ConnectionQuotas(10)) as harness:
            gc.collect()
            gc.disable()
            try:
                for _ in range(3):
                    streams = await harness.connect()
                    assert await is_served(streams)
                    streams[1].close()
                await harness.until_count(0)
                await run_pending()
                assert not any(isinstance(left, Connection) for left in gc.get_objects())
            finally:
                gc.enable()

    run(scenario, loop)
