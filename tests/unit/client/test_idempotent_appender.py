"""An appender on a partition that behaves as a broker does, and fails as the test says."""

import asyncio

import pytest

from kafscale.client.errors import AnsweredError, UnreachableError
from kafscale.client.idempotent_appender import Appender, next_sequence, producer_id_of
from kafscale.errors import InvalidProducerEpochError, KafscaleError, OutOfOrderSequenceError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.records import BatchView, Record, build, iterate
from kafscale.storage.log.state.producer_state import Producers

PRODUCER_ID = producer_id_of("test")
LOST = "the answer is lost"


class Broker:
    """A log that knows producers as a broker does; `plan` says what goes wrong with each batch."""

    def __init__(self, plan=()):
        self.plan = list(plan)
        self.values = []
        self.sent = []
        self.looks = 0
        self._producers = Producers()

    async def produce(self, batches):
        self.sent.append(len(batches))
        return [self._take(BatchView(bytes(batch))) for batch in batches]

    async def look_again(self):
        self.looks += 1

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
            return AnsweredError("the log", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        except InvalidProducerEpochError:
            return AnsweredError("the log", ErrorCode.INVALID_PRODUCER_EPOCH)
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

        appender = Appender(broker, PRODUCER_ID, sequence, pause=pause)
        offsets = []
        for batch in batches:
            offsets += await appender.add(batch)
        return offsets + await appender.flush()

    return asyncio.run(run())


def many(count):
    return [batch_of(b"%d" % n, b"%d again" % n) for n in range(count)]


def values_of(count):
    return [value for n in range(count) for value in (b"%d" % n, b"%d again" % n)]


def test_batches_arrive_in_order_and_it_is_told_where():
    broker = Broker()
    assert append(broker, many(12)) == list(range(0, 24, 2))
    assert broker.values == values_of(12)


def test_the_first_batch_goes_alone_because_a_broker_takes_any_from_a_stranger():
    busy = AnsweredError("the log", ErrorCode.REQUEST_TIMED_OUT)
    broker = Broker([busy])
    append(broker, many(5))
    assert broker.sent[:3] == [1, 1, 4]
    assert broker.values == values_of(5)


@pytest.mark.parametrize("place", range(8))
@pytest.mark.parametrize(
    "fault",
    [LOST, UnreachableError("gone"), AnsweredError("it", ErrorCode.NOT_LEADER_OR_FOLLOWER)],
    ids=["lost", "gone", "moved"],
)
def test_whatever_passes_is_tried_again_and_everything_is_there_once(place, fault):
    broker = Broker([None] * place + [fault])
    pauses = []
    assert append(broker, many(7), pauses=pauses) == list(range(0, 14, 2))
    assert broker.values == values_of(7)
    assert len(pauses) == broker.looks == (1 if place < 7 else 0)


def test_another_life_goes_on_where_the_log_ends_and_repeats_nothing():
    broker = Broker()
    append(broker, many(3))
    append(broker, many(7)[1:], sequence=2)  # It was killed before it knew of the last two.
    assert broker.values == values_of(7)


def test_of_two_lives_at_once_one_is_told():
    broker = Broker()
    append(broker, many(9))
    with pytest.raises(KafscaleError, match="another run of this job writes there"):
        append(broker, many(1), sequence=0)
    assert broker.values == values_of(9)


def test_sequences_begin_again_after_the_last():
    broker = Broker()
    append(broker, many(6), sequence=2**31 - 3)
    assert broker.values == values_of(6)
    view = BatchView(batch_of(b"a", b"b"))
    assert next_sequence(view) == 0


def test_what_does_not_pass_is_raised_with_what_to_do():
    broker = Broker([AnsweredError("it", ErrorCode.MESSAGE_TOO_LARGE)])
    with pytest.raises(KafscaleError, match=r"raise max\.message\.bytes"):
        append(broker, many(1))


def test_ids_are_those_of_no_broker_and_differ_by_what_is_written():
    ids = {producer_id_of("restore", b"id", n) for n in range(100)}
    assert len(ids) == 100
    assert all(2**62 <= each < 2**63 for each in ids)
