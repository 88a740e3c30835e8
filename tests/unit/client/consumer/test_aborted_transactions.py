"""Which batches a consumer leaves out, compared with what the transactions decided."""

from hypothesis import given
from hypothesis import strategies as st

from kafscale.client.consumer.aborted_transactions import AbortedTransactions
from kafscale.protocol.messages.fetch import AbortedTransaction
from kafscale.records import BatchView, Record, build
from kafscale.records.control import ControlType, build_end_marker

PRODUCERS = st.integers(1, 3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), PRODUCERS),
        st.tuples(st.just("plain"), PRODUCERS),
        st.tuples(st.sampled_from(ControlType), PRODUCERS),
    ),
    max_size=30,
)


class Log:
    """A partition up to its last stable offset, with what each batch is worth."""

    def __init__(self, steps):
        self.batches = []
        self.aborted = []
        """The producer id, first offset and last offset of each aborted transaction."""
        self.hidden = set()
        """The base offsets of batches of aborted transactions."""
        opened: dict[int, list[int]] = {}
        for kind, producer_id in steps:
            self._write(kind, producer_id, opened)
        for producer_id in sorted(opened):
            self._write(ControlType.COMMIT, producer_id, opened)

    def _write(self, kind, producer_id, opened):
        offset = self.batches[-1].next_offset if self.batches else 0
        if isinstance(kind, ControlType):
            offsets = opened.pop(producer_id, [])
            batch = BatchView(build_end_marker(producer_id, 0, kind, 0, 0))
            batch.stamp(offset, 0)
            if kind is ControlType.ABORT and offsets:
                self.hidden.update(offsets)
                self.aborted.append((producer_id, offsets[0], offset))
        elif kind == "plain":  # Of a producer without transactions.
            batch = BatchView(build([Record(offset, 0, None, b"")], producer_id=producer_id + 10))
        else:
            opened.setdefault(producer_id, []).append(offset)
            records = [Record(offset + each, 0, None, b"") for each in range(producer_id)]
            batch = BatchView(build(records, producer_id=producer_id, transactional=True))
        self.batches.append(batch)


@given(STEPS, st.integers(0, 40), st.integers(1, 40))
def test_batches_of_aborted_transactions_are_left_out(steps, start, count):
    log = Log(steps)
    fetched = [each for each in log.batches if each.next_offset > start][:count]
    end = fetched[-1].next_offset if fetched else start
    aborted = AbortedTransactions(
        AbortedTransaction(producer_id, first_offset)
        for producer_id, first_offset, last_offset in log.aborted
        if first_offset < end and last_offset >= start
    )
    hidden = {each.base_offset for each in fetched if aborted.contains(each)}
    markers = {each.base_offset for each in fetched if each.is_control}
    assert hidden - markers == log.hidden & {each.base_offset for each in fetched}


def test_nothing_is_left_out_without_a_list():
    log = Log([("write", 1), (ControlType.ABORT, 1)])
    assert not any(map(AbortedTransactions(None).contains, log.batches))
