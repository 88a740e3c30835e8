"""Where clients arrive, with real sockets, on both event loops."""

import asyncio
import errno
import gc
from contextlib import suppress
from itertools import pairwise

from structlog.testing import capture_logs

from kafscale.broker.network.acceptor import ACCEPTED_AT_A_TIME
from kafscale.broker.network.connection import Connection
from kafscale.broker.network.connection_quotas import Door
from unit.broker.harness import heartbeat, run, turn
from unit.broker.reception_stage import Desk, desk, is_sent_away, is_served, on_both_loops, until


@on_both_loops
def test_who_comes_is_counted_until_they_leave(loop):
    async def story():
        async with desk(Door(10)) as found:
            first, second = await found.connect(), await found.connect()
            assert await is_served(first)
            assert await is_served(second)
            assert found.door.count == 2
            first[1].close()
            await found.until_inside(1)
            assert await is_served(second)
            second[1].close()

    run(story, loop)


@on_both_loops
def test_in_between_newcomers_everybody_else_has_their_turn(loop):
    async def story():
        async with desk(Door(100)) as found:
            callers = [found.call() for _ in range(5 * ACCEPTED_AT_A_TIME)]
            counts = [found.door.count]
            while found.door.count < len(callers):
                await turn(1)
                counts.append(found.door.count)
            await until(lambda: not found.reception._arriving)
            assert max(after - before for before, after in pairwise(counts)) <= ACCEPTED_AT_A_TIME
            for caller in callers:
                caller.close()

    run(story, loop)


@on_both_loops
def test_newcomers_beyond_the_rate_wait_outside_and_come_in_later(loop):
    waits = [0.0, 0.0, 0.3]

    class Slow(Door):
        def wait_seconds(self, _now):
            return waits.pop(0) if waits else 0.0

    async def story():
        async with desk(Slow(100)) as found:
            callers = [found.call() for _ in range(3)]
            await found.until_inside(2)
            await turn(20)
            assert found.door.count == 2
            await found.until_inside(3)
            for caller in callers:
                caller.close()

    run(story, loop)


@on_both_loops
def test_who_comes_alone_takes_no_more_than_their_share_of_the_rate(loop):
    async def story():
        now = asyncio.get_running_loop().time()
        async with desk(Door(100, rate_max=2)) as found:
            for _ in range(2):
                streams = await found.connect()
                assert await is_served(streams)
                streams[1].close()
            assert asyncio.get_running_loop().time() - now < 0.4

    run(story, loop)


class Exhausted:
    """A listening socket for whose clients there is no file left, at first."""

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
def test_without_files_newcomers_wait_until_there_are_some(loop):
    async def story():
        async with desk(Door(10), wrap=Exhausted) as found:
            streams = await found.connect()
            assert await is_served(streams)
            streams[1].close()

    with capture_logs() as logs:
        run(story, loop)
    assert [event["event"] for event in logs] == ["no more connections can be accepted"]


@on_both_loops
def test_who_comes_too_often_is_held_for_a_while_and_sent_away(loop):
    async def story():
        async with desk(Door(10), delay_ms=30) as found:
            streams = await found.connect()
            streams[1].write(heartbeat(1))
            await found.until_inside(1)
            assert await is_sent_away(streams)
            await found.until_inside(0)
            assert (found.traffic.refused, found.connections) == (1, [])

    run(story, loop)


@on_both_loops
def test_a_close_during_a_pause_opens_nothing_again(loop):
    async def story():
        found = Desk(Door(10), wrap=Exhausted)
        found.reception.open()
        caller = found.call()
        await until(lambda: not found.listening.failures)
        found.reception.close()
        await asyncio.sleep(0.25)
        assert found.door.count == 0
        caller.close()

    with capture_logs():
        run(story, loop)


@on_both_loops
def test_a_close_also_sends_away_who_was_accepted_this_very_moment(loop):
    async def story():
        found = Desk(Door(10))
        caller = found.call()
        found.reception._accept()
        assert found.door.count == 1
        found.reception.close()
        await found.until_inside(0)
        with suppress(ConnectionResetError):
            assert caller.recv(1) == b""
        caller.close()

    run(story, loop)


@on_both_loops
def test_who_came_and_went_leaves_nothing_to_the_garbage_collector(loop):
    """Circles that many strangers leave would stop everybody while they are collected."""

    async def story():
        async with desk(Door(10)) as found:
            gc.collect()
            gc.disable()
            try:
                for _ in range(3):
                    streams = await found.connect()
                    assert await is_served(streams)
                    streams[1].close()
                await found.until_inside(0)
                await turn()
                assert not any(isinstance(left, Connection) for left in gc.get_objects())
            finally:
                gc.enable()

    run(story, loop)
