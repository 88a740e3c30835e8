"""The group writer: shared transactions, in order, with retries, under ownership guards."""

import asyncio
from functools import partial
from random import Random

import pytest

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.broker.shards.pausable_clock import PausableClock
from kafscale.broker.shards.shard_session import RecordNotSavedError, ShardSession
from kafscale.broker.shards.write_sequence import WriteSequence
from kafscale.broker.shards.writer import WRITES_MAX, ShardWriter, fit_together
from kafscale.errors import CoordinatorUnavailableError, NotCoordinatorError, StoreUnavailableError
from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import COMMIT_BYTES_MAX, Delete, Put
from unit.broker.group_coordinator.shard_guards import assign_shards, request_move

US, THEM = 1, 2
SESSION_ENDED = NotCoordinatorError("session ended")


class SlowStore(MemoryStore):
    """Takes a second for a commit, records commits, and fails as often as configured."""

    def __init__(self) -> None:
        super().__init__(virtual_time.clock_ms)
        self.commits: list[list[str]] = []
        self.rejected: list[list[str]] = []
        self.failures = 0
        self.failures_to_read = 0
        self.is_slow = False

    async def commit(self, compares, operations):
        if not self.is_slow:
            return await super().commit(compares, operations)
        await asyncio.sleep(1)
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError("not now")
        done = await super().commit(compares, operations)
        kept = self.commits if done.succeeded else self.rejected
        kept.append([each.key for each in operations if each.key != keys.group_writer(str(US))])
        return done

    async def get(self, key):
        if self.failures_to_read:
            self.failures_to_read -= 1
            raise StoreUnavailableError("not now")
        return await super().get(key)


class WriterSetup:
    """A running writer, and sessions of as many shards as a test needs."""

    def __init__(self, store, linger_ms):
        self.store = store
        self.on_lost = []
        clock = PausableClock(virtual_time.clock_ms, virtual_time.clock_ms)
        self.writer = ShardWriter(
            WriteSequence(store, US),
            clock,
            linger_ms=linger_ms,
            random=Random(0),
            on_lost=self._on_lost,
        )

    async def sessions(self, count):
        guards = await assign_shards(self.store, US, 1, range(count))
        return [ShardSession(shard, guard, self.writer.schedule) for shard, guard in guards.items()]

    def _on_lost(self, session):
        self.on_lost.append(session.shard)
        session.end(SESSION_ENDED)


def put(key, value=b"1"):
    return {key: lambda: Put(key, value)}


def simulate(body, linger_ms=5, shards=1):
    async def scenario(_random):
        setup = WriterSetup(SlowStore(), linger_ms)
        sessions = await setup.sessions(shards)
        setup.store.is_slow = True
        running = asyncio.create_task(setup.writer.run())
        try:
            await body(setup, *sessions)
        finally:
            running.cancel()
            await asyncio.wait([running])

    virtual_time.run(scenario, seed=0)


def test_writes_within_the_linger_time_share_a_transaction():
    async def body(setup, session):
        for key in ("/a", "/b"):
            session.write(put(key))
        await asyncio.sleep(0.003)
        session.write(put("/c"))
        await session.wait_durable(10)
        assert setup.store.commits == [["/a", "/b", "/c"]]
        assert setup.writer.transactions == 1

    simulate(body)


def test_write_that_does_not_linger_takes_others_along():
    async def body(setup, session):
        session.write(put("/a"))
        session.write(put("/b"), lingers=False)
        await asyncio.sleep(0)
        session.write(put("/c"), lingers=False)
        session.write(put("/d"))
        await session.wait_durable(10)
        assert setup.store.commits == [["/a", "/b"], ["/c", "/d"]]
        session.write(put("/e"))
        await asyncio.sleep(1)
        session.write(put("/f"))
        await session.wait_durable(100)
        assert setup.store.commits[2:] == [["/e", "/f"]], "later writes linger again"

    simulate(body, linger_ms=2000)


def test_writes_during_a_commit_go_into_the_next_transaction():
    async def body(setup, session):
        session.write(put("/a"))
        await asyncio.sleep(0.5)
        session.write(put("/b", b"old"))
        session.write(put("/c"))
        session.write(put("/b", b"new"))
        await session.wait_durable(10)
        assert setup.store.commits == [["/a"], ["/b", "/c"]]
        assert (await setup.store.get("/b")).value == b"new"

    simulate(body)


def test_value_is_built_when_the_batch_is_taken():
    async def body(setup, session):
        value = [b"when scheduled"]
        session.write({"/a": lambda: Put("/a", value[0])})
        value[0] = b"when taken"
        await session.wait_durable(10)
        assert (await setup.store.get("/a")).value == b"when taken"

    simulate(body)


def test_durable_callbacks_are_called_in_order():
    async def body(_desk, session):
        called = []
        session.when_durable(partial(called.append, "nothing to wait for"))
        assert called == ["nothing to wait for"]
        session.write(put("/a"))
        session.when_durable(partial(called.append, "a"))
        await asyncio.sleep(0.5)
        session.when_durable(partial(called.append, "a, on its way"))
        session.write(put("/b"))
        session.when_durable(partial(called.append, "b"))
        assert called == ["nothing to wait for"]
        await asyncio.sleep(0.6)
        assert called[1:] == ["a", "a, on its way"]
        await asyncio.sleep(1)
        assert called[3:] == ["b"]

    simulate(body)


def test_writer_retries_and_skips_nothing():
    async def body(setup, session):
        setup.store.failures = 3
        session.write(put("/a"))
        await asyncio.sleep(1.5)
        session.write(put("/b"))
        await session.wait_durable(60)
        assert setup.store.commits == [["/a"], ["/b"]]

    simulate(body)


def test_timeout_of_a_waiter_does_not_cancel_the_write():
    async def body(setup, session):
        setup.store.failures = 5
        session.write(put("/a"))
        with pytest.raises(CoordinatorUnavailableError):
            await session.wait_durable(2)
        await session.wait_durable(60)
        assert setup.store.commits == [["/a"]]

    simulate(body)


def test_waiters_that_gave_up_do_not_accumulate():
    """In an outage of hours, clients repeat their requests."""

    async def body(setup, session):
        setup.store.failures = 1 << 30
        called = []
        session.write(put("/a"))
        session.when_durable(partial(called.append, "always"))
        for _ in range(100):
            waits = [session.wait_durable(2) for _ in range(100)]
            ends = await asyncio.gather(*waits, return_exceptions=True)
            assert all(isinstance(each, CoordinatorUnavailableError) for each in ends)
            assert session.callback_count < 3_000
        setup.store.failures = 0
        await session.wait_durable(60)
        assert called == ["always"]

    simulate(body)


def test_many_operations_are_split_within_the_store_limits():
    async def body(setup, session):
        names = [f"/{number}" for number in range(2 * WRITES_MAX + 1)]
        for key in names:
            session.write(put(key))
        await session.wait_durable(60)
        assert [len(commit) for commit in setup.store.commits] == [WRITES_MAX, WRITES_MAX, 1]
        assert [key for commit in setup.store.commits for key in commit] == names

    simulate(body)


def test_oversized_value_does_not_block_the_others():
    async def body(setup, session):
        half = bytes(COMMIT_BYTES_MAX // 2)
        for key in ("/a", "/b", "/c"):
            session.write(put(key, half))
        session.write(put("/huge", bytes(COMMIT_BYTES_MAX)))
        await session.wait_durable(60)
        assert setup.store.commits == [["/a"], ["/b"], ["/c"]]

    simulate(body)


def test_waiters_learn_that_a_value_is_not_in_the_store():
    async def body(_setup, session):
        def fail():
            raise ValueError("not encodable")

        outcomes = []

        def wait(key):
            session.when_durable(
                partial(outcomes.append, key),
                on_lost=lambda error: outcomes.append(type(error)),
                key=key,
            )

        session.write({**put("/huge", bytes(COMMIT_BYTES_MAX)), "/damaged": fail, **put("/a")})
        wait("/huge")
        wait("/damaged")
        wait("/a")
        wait(None)
        await session.wait_durable(10)
        expected = [RecordNotSavedError, RecordNotSavedError, "/a", None]
        assert outcomes == expected
        wait("/huge")
        assert outcomes[4:] == [RecordNotSavedError], "also those that ask later"
        session.write(put("/huge"))
        wait("/huge")
        await session.wait_durable(10)
        assert outcomes[5:] == ["/huge"]

    simulate(body)


def test_deletion_replaces_a_pending_value():
    async def body(setup, session):
        session.write(put("/a"))
        session.write({"/a": lambda: Delete("/a")})
        await session.wait_durable(10)
        assert setup.store.commits == [["/a"]]
        assert await setup.store.get("/a") is None

    simulate(body)


# --- keys that are written together -------------------------------------------------------------


def test_keys_that_are_written_together_share_a_transaction():
    async def body(setup, session):
        for number in range(WRITES_MAX - 1):
            session.write(put(f"/{number}"))
        session.write(put("/a", b"before"))
        assert session.write_together({"/b": Put("/b", b"1"), "/a": Put("/a", b"1")})
        await session.wait_durable(10)
        # They do not fit into the first one.
        first, second = setup.store.commits
        assert (len(first), sorted(second)) == (WRITES_MAX - 1, ["/a", "/b"])
        assert (await setup.store.get("/a")).value == b"1"

    simulate(body)


def test_newer_values_stay_together():
    async def body(setup, session):
        assert session.write_together({"/a": Put("/a", b"1"), "/b": Put("/b", b"1")})
        assert not session.write_together({"/b": Put("/b", b"2"), "/c": Put("/c", b"2")})
        session.write(put("/c"))
        session.write({"/b": Put("/b", b"2")})
        setup.store.failures = 2
        await asyncio.sleep(1.5)
        # What is on its way does not hinder the next.
        assert session.write_together({"/b": Delete("/b"), "/c": Delete("/c")})
        await session.wait_durable(10)
        assert setup.store.commits == [["/a", "/b", "/c"], ["/b", "/c"]]

    simulate(body)


def test_values_that_outgrow_a_transaction_are_split():
    async def body(setup, session):
        value = bytes(COMMIT_BYTES_MAX - 2_000)
        assert fit_together([Put("/a", value), Put("/b", b"1")])
        assert not fit_together([Put("/a", value), Put("/b", value)])
        assert not fit_together([Delete(f"/{number}") for number in range(WRITES_MAX + 1)])
        assert session.write_together({"/a": Put("/a", value), "/b": Put("/b", b"1")})
        session.write({"/b": Put("/b", value)})
        await session.wait_durable(10)
        assert setup.store.commits == [["/a"], ["/b"]]

    simulate(body)


def test_finish_does_not_linger():
    async def body(setup, session):
        began = asyncio.get_running_loop().time()
        session.write(put("/a"))
        await asyncio.sleep(0)
        await setup.writer.finish(10)
        assert setup.store.commits == [["/a"]]
        assert asyncio.get_running_loop().time() - began < 2

    simulate(body, linger_ms=5_000)


# --- ownership ----------------------------------------------------------------------------------


def test_shards_share_a_transaction_that_compares_all_guards():
    async def body(setup, *sessions):
        for session in sessions:
            session.write(put(f"/{session.shard}"))
        await asyncio.gather(*(session.wait_durable(10) for session in sessions))
        assert setup.store.commits == [[f"/{shard}" for shard in range(50)]]

    simulate(body, shards=50)


def test_lost_shard_is_left_out_and_the_others_are_written():
    async def body(setup, ours, on_lost, also_ours):
        for session in (ours, on_lost, also_ours):
            session.write(put(f"/{session.shard}"))
        await assign_shards(setup.store, THEM, 1, [on_lost.shard])
        ends = await asyncio.gather(
            *(each.wait_durable(10) for each in (ours, on_lost, also_ours)), return_exceptions=True
        )
        assert ends == [None, SESSION_ENDED, None]
        assert setup.on_lost == [on_lost.shard]
        assert setup.store.rejected == [["/0", "/1", "/2"]]
        assert setup.store.commits[-1] == ["/0", "/2"]
        assert await setup.store.get("/1") is None

    simulate(body, shards=3)


def test_changed_assignment_of_the_same_owner_is_reloaded():
    async def body(setup, session):
        await request_move(setup.store, session.shard, THEM)
        session.write(put("/a"))
        await session.wait_durable(10)
        session.write(put("/b"))
        await session.wait_durable(10)
        assert setup.store.rejected == [["/a"]]
        assert setup.store.commits[-2:] == [["/a"], ["/b"]]
        assert setup.on_lost == []

    simulate(body)


def test_guards_are_read_until_the_store_responds():
    async def body(setup, session):
        await assign_shards(setup.store, THEM, 1, [session.shard])
        setup.store.failures_to_read = 4
        session.write(put("/a"))
        with pytest.raises(NotCoordinatorError):
            await session.wait_durable(60)
        assert setup.store.failures_to_read == 0
        assert await setup.store.get("/a") is None

    simulate(body)


def test_ended_session_writes_nothing_more():
    async def body(setup, ended, other):
        outcomes = []
        setup.store.failures = 5
        ended.write(put("/on its way"))
        ended.when_durable(partial(outcomes.append, "written"), on_lost=outcomes.append)
        await asyncio.sleep(1.5)
        ended.write(put("/asked for"))
        ended.when_durable(partial(outcomes.append, "written"), on_lost=outcomes.append)
        other.write(put("/other"))
        ended.end(SESSION_ENDED)
        ended.write(put("/too late"))
        ended.when_durable(partial(outcomes.append, "written"), on_lost=outcomes.append)
        assert outcomes == [SESSION_ENDED, SESSION_ENDED, SESSION_ENDED]
        with pytest.raises(NotCoordinatorError):
            await ended.wait_durable(10)
        await ended.wait_written()
        await other.wait_durable(60)
        assert setup.store.commits == [["/other"]]

    simulate(body, shards=2)


def test_end_of_a_session_unblocks_other_writes():
    async def body(setup, ended, other):
        loop = asyncio.get_running_loop()
        setup.store.failures = 8
        ended.write(put("/a"))
        await asyncio.sleep(30)
        setup.store.failures = 0
        ended.end(SESSION_ENDED)
        setup.writer.retry_now()
        began = loop.time()
        other.write(put("/b"))
        await other.wait_durable(10)
        assert loop.time() - began < 1.5
        assert setup.store.commits == [["/b"]]

    simulate(body, shards=2)


def test_wait_durable_starts_with_the_call():
    async def body(_desk, session):
        session.write(put("/a"))
        waiting = session.wait_durable(10)
        await asyncio.sleep(2)
        session.end(SESSION_ENDED)
        await waiting

    simulate(body)
