"""What a transactional producer sends, and what it does about errors."""

import asyncio

import pytest

from kafscale.client.errors import (
    RETRIES_COUNT_MAX,
    AbortableTransactionError,
    BrokerResponseError,
    ProducerFencedError,
    UnreachableError,
)
from kafscale.client.transactions.group_commit import GroupMembership
from kafscale.client.transactions.producer import State, TransactionalProducer, TransactionSettings
from kafscale.errors import InvalidTransactionStateError
from kafscale.protocol.error_codes import ErrorCode
from unit.client.transactions.scripted_cluster import TOPIC, ScriptedCluster

CLASSIC, VERSION_2 = 1, 2
LOST = UnreachableError("the connection was lost")


def with_producer(cluster, scenario, **settings):
    """Run a scenario with a producer that has its id."""

    async def run():
        producer = TransactionalProducer(
            cluster, "billing", TransactionSettings(**settings), clock=lambda: 0, pause=_no_pause
        )
        async with producer:
            await producer.init()
            await scenario(producer)

    asyncio.run(run())


async def _no_pause(_seconds):
    await asyncio.sleep(0)


async def _write(producer, *partitions):
    for partition in partitions:
        await producer.send(TOPIC, b"value", partition=partition)


def test_classic_transactions_add_partitions_once_and_keep_the_epoch():
    async def scenario(producer):
        for _ in range(2):
            await producer.begin()
            await _write(producer, 0, 1)
            await producer.flush()
            await _write(producer, 0)
            await producer.send_offsets(GroupMembership("group"), {(TOPIC, 0): 5})
            await producer.commit()

    cluster = ScriptedCluster(level=CLASSIC)
    with_producer(cluster, scenario)
    added = [
        index
        for request in cluster.named("AddPartitionsToTxn")
        for topic in request.topics
        for index in topic.partitions
    ]
    assert sorted(added) == [0, 0, 1, 1]
    versions = {name: version for name, version, _ in cluster.requests}
    assert versions["Produce"] == 11
    assert versions["AddPartitionsToTxn"] == 3
    assert (versions["TxnOffsetCommit"], versions["EndTxn"]) == (4, 4)
    assert sorted(cluster.sequences()) == [(0, 0), (0, 0), (0, 1), (0, 1), (0, 2), (0, 3)]
    assert cluster.names()[-3:] == ["TxnOffsetCommit", "Produce", "EndTxn"]


def test_version_2_adds_nothing_and_starts_sequences_with_every_epoch():
    async def scenario(producer):
        for _ in range(2):
            await producer.begin()
            await _write(producer, 0)
            await producer.send_offsets(GroupMembership("group"), {(TOPIC, 0): 5})
            await producer.commit()
        assert producer.producer.producer_epoch == 2

    cluster = ScriptedCluster(level=VERSION_2)
    with_producer(cluster, scenario)
    one = ["TxnOffsetCommit", "Produce", "EndTxn"]
    assert cluster.names() == ["InitProducerId", *one, *one]
    assert cluster.sequences() == [(0, 0), (1, 0)]


@pytest.mark.parametrize("level", [CLASSIC, VERSION_2])
def test_an_empty_transaction_needs_no_request(level):
    async def scenario(producer):
        await producer.begin()
        await producer.commit()
        await producer.begin()
        await _write(producer, 0)
        await producer.abort()
        assert producer.state is State.READY

    cluster = ScriptedCluster(level=level)
    with_producer(cluster, scenario)
    assert cluster.names() == ["InitProducerId"]


@pytest.mark.parametrize("level", [CLASSIC, VERSION_2])
def test_a_batch_is_repeated_with_its_sequence(level):
    async def scenario(producer):
        await producer.begin()
        await _write(producer, 0)
        await producer.flush()
        await _write(producer, 0)
        await producer.commit()

    cluster = ScriptedCluster(level=level)
    cluster.script["Produce"].extend(
        [LOST, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.DUPLICATE_SEQUENCE_NUMBER]
    )
    with_producer(cluster, scenario)
    assert cluster.sequences() == [(0, 0), (0, 0), (0, 0), (0, 1)]


def test_full_batches_are_sent_before_the_end():
    async def scenario(producer):
        await producer.begin()
        await _write(producer, 0, 0, 0)
        await producer.send(TOPIC, b"v" * 100, partition=0)
        await asyncio.sleep(0.01)
        assert len(cluster.named("Produce")) == 1
        await producer.commit()

    cluster = ScriptedCluster(level=VERSION_2)
    with_producer(cluster, scenario, batch_bytes=100)
    assert cluster.sequences() == [(0, 0)]


@pytest.mark.parametrize(("level", "epoch_bumps"), [(CLASSIC, 1), (VERSION_2, 0)])
def test_after_a_failure_only_an_abort_is_possible(level, epoch_bumps):
    async def scenario(producer):
        await producer.begin()
        await _write(producer, 0)
        with pytest.raises(AbortableTransactionError) as failed:
            await producer.commit()
        assert failed.value.__cause__.error_code is ErrorCode.INVALID_TXN_STATE
        for attempt in (producer.commit, producer.flush, lambda: _write(producer, 1)):
            with pytest.raises(AbortableTransactionError):
                await attempt()
        with pytest.raises(InvalidTransactionStateError):
            await producer.begin()
        await producer.abort()
        await producer.begin()
        await _write(producer, 0)
        await producer.commit()

    cluster = ScriptedCluster(level=level)
    cluster.script["Produce"].append(ErrorCode.INVALID_TXN_STATE)
    with_producer(cluster, scenario)
    first, *renewals = cluster.named("InitProducerId")
    assert (first.producer_id, first.producer_epoch) == (-1, -1)
    # Sequence numbers start again in both protocols, because it is unknown what was stored.
    assert [each.producer_epoch for each in renewals] == [0] * epoch_bumps
    assert cluster.sequences() == [(0, 0), (1, 0)]
    assert [each.committed for each in cluster.named("EndTxn")] == [False, True]


@pytest.mark.parametrize("code", [ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH])
def test_a_fenced_producer_is_done(code):
    async def scenario(producer):
        await producer.begin()
        await _write(producer, 0)
        with pytest.raises(ProducerFencedError):
            await producer.commit()
        assert producer.state is State.DONE
        for attempt in (producer.commit, producer.abort, producer.begin):
            with pytest.raises(InvalidTransactionStateError):
                await attempt()

    cluster = ScriptedCluster(level=VERSION_2)
    cluster.script["EndTxn"].append(code)
    with_producer(cluster, scenario)
    assert cluster.names().count("EndTxn") == 1


def test_an_error_that_another_transaction_would_meet_is_final():
    async def scenario(producer):
        await producer.begin()
        with pytest.raises(BrokerResponseError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
            await producer.send_offsets(GroupMembership("group"), {(TOPIC, 0): 5})
        assert producer.state is State.DONE

    cluster = ScriptedCluster(level=CLASSIC)
    cluster.script["AddOffsetsToTxn"].append(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    with_producer(cluster, scenario)


@pytest.mark.parametrize(
    ("outcomes", "ends"),
    [
        ([ErrorCode.TOPIC_AUTHORIZATION_FAILED], []),
        ([LOST] * (RETRIES_COUNT_MAX + 1), [False]),
        ([ErrorCode.REQUEST_TIMED_OUT] * (RETRIES_COUNT_MAX + 1), [False]),
    ],
)
@pytest.mark.parametrize("name", ["AddPartitionsToTxn", "AddOffsetsToTxn"])
def test_what_the_coordinator_refused_to_begin_is_not_ended(name, outcomes, ends):
    async def scenario(producer):
        await producer.begin()
        if name == "AddPartitionsToTxn":
            await _write(producer, 0)
            with pytest.raises(AbortableTransactionError) as failed:
                await producer.flush()
        else:
            with pytest.raises(AbortableTransactionError) as failed:
                await producer.send_offsets(GroupMembership("group"), {(TOPIC, 0): 5})
        assert getattr(failed.value.__cause__, "error_code", LOST) == outcomes[0]
        await producer.abort()
        assert producer.state is State.READY

    cluster = ScriptedCluster(level=CLASSIC)
    cluster.script[name].extend(outcomes)
    with_producer(cluster, scenario)
    assert [each.committed for each in cluster.named("EndTxn")] == ends


def test_a_commit_of_unknown_outcome_can_only_be_repeated():
    async def scenario(producer):
        await producer.begin()
        await _write(producer, 0)
        with pytest.raises(UnreachableError):
            await producer.commit()
        assert producer.state is State.COMMITTING
        for attempt in (producer.abort, producer.begin, lambda: _write(producer, 0)):
            with pytest.raises(InvalidTransactionStateError):
                await attempt()
        await producer.commit()
        assert producer.state is State.READY

    cluster = ScriptedCluster(level=VERSION_2)
    cluster.script["EndTxn"].extend([LOST] * (RETRIES_COUNT_MAX + 1))
    with_producer(cluster, scenario)
    ends = cluster.named("EndTxn")
    assert len(ends) == RETRIES_COUNT_MAX + 2
    assert {(each.producer_epoch, each.committed) for each in ends} == {(0, True)}


def test_the_exit_aborts_an_open_transaction_but_not_one_that_was_handed_over():
    async def abandoned(producer):
        await producer.begin()
        await _write(producer, 0)
        await producer.flush()

    async def handed_over(producer):
        await producer.begin()
        await _write(producer, 0)
        transaction = await producer.detach()
        assert (transaction.producer, transaction.version_2) == (producer.producer, True)

    ends = []
    for scenario in (abandoned, handed_over):
        cluster = ScriptedCluster(level=VERSION_2)
        with_producer(cluster, scenario)
        ends.append([each.committed for each in cluster.named("EndTxn")])
    assert ends == [[False], []]
