"""Clients that do not read their responses: what the broker holds for them is limited."""

import asyncio
from dataclasses import replace
from random import Random

from doubles import virtual_time
from kafscale.broker.network.connection import Connection
from kafscale.broker.network.listener_context import ListenerContext
from kafscale.broker.requests.route import route
from kafscale.config import Config
from kafscale.config.sections.network import Network
from kafscale.config.sections.s3 import S3
from kafscale.protocol.messages.fetch import FETCH, FetchRequest, PartitionToFetch, TopicToFetch
from kafscale.protocol.messages.heartbeat import HEARTBEAT
from kafscale.protocol.messages.produce import PRODUCE, ProduceResponse
from kafscale.records import BatchView, Record, build
from unit.broker.harness import (
    LIMITS,
    ManualHandlers,
    Peer,
    Transport,
    heartbeat,
    heartbeat_handler,
    produce,
    request,
    run,
    run_pending,
)
from unit.broker.in_memory_broker import Stores, running_broker

MIB = 1024 * 1024
BATCH_BYTES = 100_000
BATCHES = 240
BUDGET = 8 * MIB
CONFIG = Config(s3=S3(use_memory=True), network=Network(unsent_bytes_max=BUDGET))


class UnreadTransport(Transport):
    """The transport of a client that reads nothing until `drain`."""

    HIGH_WATER_BYTES = 64 * 1024

    def __init__(self):
        super().__init__()
        self.protocol = None
        self.held = []

    def writelines(self, parts):
        self.write_count += 1
        self.held += parts
        if self.get_write_buffer_size() > self.HIGH_WATER_BYTES:
            self.protocol.pause_writing()

    def get_write_buffer_size(self):
        return sum(map(len, self.held))

    def drain(self):
        self.held.clear()
        self.protocol.resume_writing()


class Client:
    """A connection to a broker, with pipelined fetches of old records."""

    def __init__(self, broker):
        context = ListenerContext(
            broker.dispatcher,
            replace(LIMITS, in_flight_requests_max=64),
            on_opened=lambda _: True,
            on_closed=lambda _: None,
            responses=broker.services.responses,
        )
        self.transport = UnreadTransport()
        self.connection = self.transport.protocol = Connection(context, 0.0)
        self.connection.connection_made(self.transport)

    def fetch(self, *offsets):
        for offset in offsets:
            wanted = PartitionToFetch(index=0, offset=offset, max_bytes=50 * MIB)
            message = FetchRequest(
                max_wait_ms=100,
                min_bytes=1,
                max_bytes=50 * MIB,
                topics=[TopicToFetch("old", partitions=[wanted])],
            )
            data = request(FETCH, 11, message)
            self.connection.get_buffer(-1)[: len(data)] = data
            self.connection.buffer_updated(len(data))


async def write_old_records(stores):
    """Write records into segments, of which the next broker has nothing in memory."""
    random = Random(0)
    async with running_broker(stores, CONFIG) as broker:
        await broker.topic("old", compression_type="none", segment_bytes=str(6 * MIB))
        for _ in range(BATCHES):
            record = Record(0, virtual_time.clock_ms(), None, random.randbytes(BATCH_BYTES))
            broker.log("old").append(BatchView(build([record])), virtual_time.clock_ms())
        await broker.services.storage.wal.flush()
        await broker.roll("old")


def pinned_bytes(clients):
    """The memory that unsent responses keep, whole blocks included."""
    objects = {
        id(part.obj): part.obj
        for client in clients
        for part in client.transport.held
        if isinstance(part, memoryview)
    }
    return sum(map(len, objects.values()))


def test_memory_of_clients_that_do_not_read_is_limited():
    async def scenario(_random):
        stores = Stores()
        await write_old_records(stores)
        async with running_broker(stores, CONFIG) as broker:
            budget = broker.services.responses
            clients = [Client(broker) for _ in range(20)]
            for number, client in enumerate(clients):
                client.fetch(*((number * 3 + fetch) * 4 for fetch in range(3)))
            await asyncio.sleep(5)

            limit = BUDGET + len(clients) * (BATCH_BYTES + 200)
            assert all(client.transport.held for client in clients)  # Each got something.
            unsent = sum(client.transport.get_write_buffer_size() for client in clients)
            assert unsent <= limit
            assert pinned_bytes(clients) <= 2 * limit
            assert budget.used_bytes == unsent

            reader = Client(broker)
            reader.fetch(100)
            await asyncio.sleep(1)
            assert reader.transport.get_write_buffer_size() > BATCH_BYTES
            for _ in range(3):  # The pipelined fetches are answered as well.
                for client in clients:
                    client.transport.drain()
                await asyncio.sleep(1)
            assert [client.transport.write_count for client in clients] == [3] * len(clients)
            for client in (*clients, reader):
                client.connection.connection_lost(None)
            assert budget.used_bytes == 0

    virtual_time.run(scenario, seed=0)


def test_fetch_of_a_client_that_left_gives_its_memory_back():
    async def scenario(_random):
        stores = Stores()
        await write_old_records(stores)
        async with running_broker(stores, CONFIG) as broker:
            client = Client(broker)
            client.fetch(0)
            await asyncio.sleep(0)
            assert broker.services.responses.used_bytes == BUDGET // 4
            client.connection.connection_lost(None)
            await asyncio.sleep(1)
            assert broker.services.responses.used_bytes == 0

    virtual_time.run(scenario, seed=0)


def test_nothing_is_read_while_many_responses_wait_for_an_earlier_one():
    async def body():
        handlers = ManualHandlers()
        peer = Peer(
            next(each for each in handlers.routes() if each.api is PRODUCE),
            route(HEARTBEAT, heartbeat_handler),
            limits=replace(LIMITS, in_flight_requests_max=64, queued_bytes_max=40),
        )
        peer.send(produce(1), *map(heartbeat, range(2, 20)))
        assert not peer.transport.reading
        assert len(peer.connection._responses) == 4  # Responses of 15 bytes.
        handlers.futures[1].set_result(ProduceResponse())
        await run_pending()
        assert peer.transport.answered == list(range(1, 20))
        assert peer.transport.reading

    run(body)
