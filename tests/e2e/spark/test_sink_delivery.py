"""The transaction of a micro-batch, with a driver that dies at each of its requests.

With `--on-kafka` the tests run on Apache Kafka.
"""

import asyncio

import pytest

from kafscale.admin.groups import reset
from kafscale.admin.groups.reset import ResetTarget, TargetKind
from kafscale.client.blocking import parse_addresses
from kafscale.client.client import Client
from kafscale.client.errors import RETRIES_COUNT_MAX, BrokerResponseError, UnreachableError
from kafscale.client.transactions.producer import TransactionalProducer, TransactionSettings
from kafscale.errors import InvalidRequestError
from kafscale.records import Record, build
from kafscale.spark.sink.delivery import MicroBatch, deliver
from services.broker import BrokerProcess
from services.committed_records import read_values
from services.kafka_records import create
from services.kafka_server import KafkaServer

SETTINGS = TransactionSettings(timeout_ms=60_000)
PARTITIONS = 2
REQUESTS_MAX = 60
ON_KAFKA = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}


class DriverDiedError(BaseException):
    """No exception of the code that dies, which therefore does not handle it."""


class MortalClient(Client):
    """A client that dies at a request: before it is sent, or before its response is read."""

    def __init__(self, address, requests, *, is_sent):
        super().__init__(parse_addresses(address))
        self._left = requests
        self._is_sent = is_sent

    async def connect(self, address):
        connection = await super().connect(address)
        ask = connection.ask

        async def ask_while_alive(*arguments, **options):
            self._left -= 1
            if self._left < 0 or (self._left == 0 and not self._is_sent):
                raise DriverDiedError
            response = await ask(*arguments, **options)
            if self._left == 0:
                raise DriverDiedError
            return response

        connection.ask = ask_while_alive
        return connection


@pytest.fixture(scope="module")
def server(request, tmp_path_factory):
    """The address of the brokers."""
    directory = tmp_path_factory.mktemp("server")
    on_kafka = request.config.getoption("on_kafka")
    with KafkaServer(directory, ON_KAFKA) if on_kafka else BrokerProcess(directory) as running:
        yield running.address


@pytest.fixture
def query(server, topic):
    """The name of a query with a topic to write to."""
    create(server, topic, PARTITIONS)
    return topic


def batches(topic, micro_batch):
    """Two batches of each partition."""

    def batch(number):
        values = [b"%d-%d-%d" % (micro_batch, number, each) for each in range(3)]
        return build([Record(index, 0, None, value, ()) for index, value in enumerate(values)])

    return {(topic, index): [batch(0), batch(1)] for index in range(PARTITIONS)}


def values(*micro_batches):
    """The values of each partition, in order."""
    return [
        f"{micro_batch}-{number}-{each}"
        for micro_batch in micro_batches
        for number in range(2)
        for each in range(3)
    ]


def write(query, micro_batch, client):
    async def run():
        async with client:
            return await deliver(
                client, query, SETTINGS, batches(query, micro_batch), MicroBatch(query, micro_batch)
            )

    return asyncio.run(run())


def client_of(server):
    return Client(parse_addresses(server))


@pytest.mark.parametrize("is_sent", [False, True])
def test_driver_that_dies_at_any_request_leaves_no_half(server, query, is_sent):
    write(query, 0, client_of(server))
    outcomes = set()
    for number, requests in enumerate(range(1, REQUESTS_MAX), 1):
        try:
            write(query, number, MortalClient(server, requests, is_sent=is_sent))
        except DriverDiedError:
            outcomes.add(write(query, number, client_of(server)))
            assert not write(query, number, client_of(server))
        else:
            break
    else:
        pytest.fail("a micro-batch takes more requests than expected")
    # A response of EndTxn that is lost has committed already.
    assert outcomes == ({True, False} if is_sent else {True})
    expected = values(*range(number + 1))
    assert read_values(server, query) == dict.fromkeys(range(PARTITIONS), expected)


def test_older_driver_cannot_commit_any_more(server, query):
    async def run():
        async with Client(parse_addresses(server)) as old, Client(parse_addresses(server)) as new:
            producer = TransactionalProducer(old, query, SETTINGS)
            await producer.init()
            await producer.begin()
            for (topic, index), (first, _) in batches(query, 0).items():
                await producer.send_batch(topic, index, first)
            await producer.flush()
            assert await deliver(new, query, SETTINGS, batches(query, 0), MicroBatch(query, 0))
            with pytest.raises(BrokerResponseError):
                await producer.commit()

    asyncio.run(run())
    assert read_values(server, query) == dict.fromkeys(range(PARTITIONS), values(0))


def test_expired_transaction_is_reported_and_leaves_nothing(server, query):
    class SlowClient(Client):
        async def connect(self, address):
            connection = await super().connect(address)
            ask = connection.ask

            async def slowly(api, *arguments, **options):
                if api.name == "EndTxn":
                    await asyncio.sleep(2)
                return await ask(api, *arguments, **options)

            connection.ask = slowly
            return connection

    async def run():
        settings = TransactionSettings(timeout_ms=300)
        async with SlowClient(parse_addresses(server)) as client:
            await deliver(client, query, settings, batches(query, 0), MicroBatch(query, 0))

    with pytest.raises(BrokerResponseError, match=r"kafka\.transaction\.timeout\.ms"):
        asyncio.run(run())
    assert read_values(server, query) == {0: [], 1: []}
    assert write(query, 0, client_of(server))
    assert read_values(server, query) == dict.fromkeys(range(PARTITIONS), values(0))


def test_timeout_above_the_maximum_of_the_brokers_is_explained(server, query):
    async def run():
        async with client_of(server) as client:
            await deliver(client, query, TransactionSettings(timeout_ms=900_001), {})

    with pytest.raises(BrokerResponseError, match=r"transaction\.timeout\.ms is 900001, .* exceed"):
        asyncio.run(run())


@pytest.mark.parametrize("refused", range(1, 5))
def test_refused_connection_is_retried(server, query, refused):
    """Each connection in turn is refused once, as after the death of its broker."""

    class RefusedClient(Client):
        connections = 0

        async def connect(self, address):
            self.connections += 1
            if self.connections == refused:
                raise UnreachableError("connection refused")
            return await super().connect(address)

    client = RefusedClient(parse_addresses(server))
    assert write(query, 0, client)
    assert client.connections == 5
    assert read_values(server, query) == dict.fromkeys(range(PARTITIONS), values(0))


def test_transaction_begins_again_after_retries(server, query):
    class LossyClient(Client):
        losses_left = RETRIES_COUNT_MAX + 1

        async def connect(self, address):
            connection = await super().connect(address)
            ask = connection.ask

            async def ask_with_losses(api, *arguments, **options):
                if api.name == "TxnOffsetCommit" and self.losses_left:
                    self.losses_left -= 1
                    raise UnreachableError("the connection was lost")
                return await ask(api, *arguments, **options)

            connection.ask = ask_with_losses
            return connection

    async def run():
        async with LossyClient(parse_addresses(server)) as client:
            one = batches(query, 0)
            micro_batch = MicroBatch(query, 0)
            return await deliver(client, query, SETTINGS, one, micro_batch, pause=short_pause)

    assert asyncio.run(run())
    assert read_values(server, query) == dict.fromkeys(range(PARTITIONS), values(0))


async def short_pause(_seconds):
    await asyncio.sleep(0.01)


def test_micro_batch_behind_the_newest_is_refused(server, query):
    for number in (0, 1, 4):
        assert write(query, number, client_of(server))
    assert not write(query, 4, client_of(server))
    with pytest.raises(InvalidRequestError, match="micro-batch 4 was written, but Spark repeats 3"):
        write(query, 3, client_of(server))


def test_micro_batch_with_another_record_count_is_refused(server, query):
    """A checkpoint that is rolled back by one micro-batch, which Spark then plans again."""
    assert write(query, 0, client_of(server))
    longer = batches(query, 0)
    longer[query, 1].append(build([Record(0, 0, None, b"new", ())]))

    def write_longer():
        async def run():
            async with client_of(server) as client:
                return await deliver(client, query, SETTINGS, longer, MicroBatch(query, 0))

        return asyncio.run(run())

    with pytest.raises(InvalidRequestError, match=r"0 was written with 12 records, .* with 13"):
        write_longer()
    # As the error says, and as versions did that had no count.
    asyncio.run(reset_to_current(server, query))
    assert not write_longer()
    assert write(query, 1, client_of(server))
    assert read_values(server, query) == dict.fromkeys(range(PARTITIONS), values(0, 1))


async def reset_to_current(server, group):
    async with client_of(server) as client:
        await reset.reset(client, group, None, ResetTarget(TargetKind.CURRENT), execute=True)
