"""The transaction of a micro-batch, with a driver that dies at each of its requests.

With `--on-kafka` the tests run on Apache Kafka.
"""

import asyncio

import pytest

from kafscale.client.blocking import parse_addresses
from kafscale.client.client import Client
from kafscale.client.errors import BrokerResponseError
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


def test_micro_batch_behind_the_newest_is_refused(server, query):
    for number in (0, 1, 4):
        assert write(query, number, client_of(server))
    assert not write(query, 4, client_of(server))
    with pytest.raises(InvalidRequestError, match="micro-batch 4 was written, but Spark repeats 3"):
        write(query, 3, client_of(server))
