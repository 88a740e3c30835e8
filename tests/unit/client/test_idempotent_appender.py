"""The appender with a fake partition that checks sequences like a broker and fails on demand."""

import asyncio

import pytest

from kafscale.client.errors import BrokerResponseError, UnreachableError
from kafscale.client.idempotent_appender import IdempotentAppender, next_sequence, producer_id_of
from kafscale.errors import InvalidProducerEpochError, KafscaleError, OutOfOrderSequenceError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.records import BatchView, Record, build, iterate
from kafscale.storage.log.state.producer_state import Producers

PRODUCER_ID = producer_id_of("test")
LOST = "the response is lost"


class Broker:
    """A log with the producer state of a broker; `plan` lists the faults of the next batches."""

    def __init__(self, plan=()):
        self.plan = list(plan)
        self.values = []
        self.sent = []
        self.refreshes = 0
        self._producers = Producers()

    async def produce(self, batches):
        self.sent.append(len(batches))
        return [self._take(BatchView(bytes(batch))) for batch in batches]

    async def refresh_metadata(self):
        self.refreshes += 1

    def _take(self, batch):
        batch.validate()
        fault = self.plan.pop(0) if self.plan else None
        if isinstance(fault, KafscaleError):
            return fault
        header = batch.header()
        sequences = (header.base_sequence, header.last_sequence)
        try:
            known = self._producers.check(header.producer_id, header.producer_epoch, *sequences)
        except OutOfOrderSequenceError:
            return BrokerResponseError("the log", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        except InvalidProducerEpochError:
            return BrokerResponseError("the log", ErrorCode.INVALID_PRODUCER_EPOCH)
        if known is not None:
            return known.base_offset
        offset = len(self.values)
        self.values += [record.value for record in iterate(batch)]
        self._producers.record(
            header.producer_id,
            header.producer_epoch,
            *sequences,
            offset,
            len(self.values) - 1,
            0,
            len(self.values),
        )
        return UnreachableError(LOST) if fault == LOST else offset


def batch_of(*values):
    return build([Record(n, 0, None, value) for n, value in enumerate(values)])


def append(broker, batches, sequence=0, pauses=None):
    async def run():
        async def pause(seconds):
            if pauses is not None:
                pauses.append(seconds)

        appender = IdempotentAppender(broker, PRODUCER_ID, sequence, pause=pause)
        offsets = []
        for batch in batches:
            offsets += await appender.add(batch)
        return offsets + await appender.flush()

    return asyncio.run(run())


def batches_of_two(count):
    return [batch_of(b"%d" % n, b"%d again" % n) for n in range(count)]


def values_of(count):
    return [value for n in range(count) for value in (b"%d" % n, b"%d again" % n)]


def test_appender_returns_the_offsets_of_batches_in_order():
    broker = Broker()
    assert append(broker, batches_of_two(12)) == list(range(0, 24, 2))
    assert broker.values == values_of(12)


def test_appender_sends_the_first_batch_alone():
    busy = BrokerResponseError("the log", ErrorCode.REQUEST_TIMED_OUT)
    broker = Broker([busy])
    append(broker, batches_of_two(5))
    assert broker.sent[:3] == [1, 1, 4]
    assert broker.values == values_of(5)


@pytest.mark.parametrize("position", range(8))
@pytest.mark.parametrize(
    "fault",
    [LOST, UnreachableError("gone"), BrokerResponseError("it", ErrorCode.NOT_LEADER_OR_FOLLOWER)],
    ids=["lost", "gone", "moved"],
)
def test_appender_retries_and_stores_each_batch_once(position, fault):
    broker = Broker([None] * position + [fault])
    pauses = []
    assert append(broker, batches_of_two(7), pauses=pauses) == list(range(0, 14, 2))
    assert broker.values == values_of(7)
    assert len(pauses) == broker.refreshes == (1 if position < 7 else 0)


def test_second_run_continues_without_duplicates():
    broker = Broker()
    append(broker, batches_of_two(3))
    append(broker, batches_of_two(7)[1:], sequence=2)  # Two batches were stored without a response.
    assert broker.values == values_of(7)


def test_concurrent_run_fails():
    broker = Broker()
    append(broker, batches_of_two(9))
    with pytest.raises(KafscaleError, match="another run of this job writes to this partition"):
        append(broker, batches_of_two(1), sequence=0)
    assert broker.values == values_of(9)


def test_sequence_numbers_wrap_around():
    broker = Broker()
    append(broker, batches_of_two(6), sequence=2**31 - 3)
    assert broker.values == values_of(6)
    view = BatchView(batch_of(b"a", b"b"))
    assert next_sequence(view) == 0


def test_error_that_is_not_retriable_has_a_hint():
    broker = Broker([BrokerResponseError("it", ErrorCode.MESSAGE_TOO_LARGE)])
    with pytest.raises(KafscaleError, match=r"raise max\.message\.bytes"):
        append(broker, batches_of_two(1))


def test_producer_ids_are_unique_and_outside_the_range_of_brokers():
    ids = {producer_id_of("restore", b"id", n) for n in range(100)}
    assert len(ids) == 100
    assert all(2**62 <= each < 2**63 for each in ids)
