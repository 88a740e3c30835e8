"""The loops of compaction, compiled and interpreted, compared with plain Python over records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import InvalidRecordError
from kafscale.records import BatchView, Record, build, compaction, inflate, iterate
from unit.records.interpreted import interpreted

MODULES = {"as installed": compaction, "interpreted": interpreted(compaction)}
every_module = pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)

LONG = compaction.DIGEST_BYTES
KEYS = st.none() | st.sampled_from(
    [b"", b"a", b"b", b"k" * (LONG - 1), b"k" * LONG, b"k" * LONG + b"!", b"k" * 300]
)
VALUES = st.none() | st.binary(max_size=90)
SHIFTS = st.sampled_from([0, 1, -1, 63, 64, 2**20, -(2**40), 2**61])


@st.composite
def batches(draw):
    """A batch with gaps, as compaction leaves it."""
    offset, records = draw(st.integers(0, 2**40)), []
    for _ in range(draw(st.integers(1, 12))):
        offset += draw(st.integers(1, 200))
        records.append(Record(offset, draw(st.integers(0, 2**45)), draw(KEYS), draw(VALUES), ()))
    return BatchView(build(records))


def noted(module, batch, latest):
    before = dict(latest)
    grown = module.note_latest(inflate(batch), batch.count, batch.base_offset, latest)
    new = set(latest) - set(before)
    assert grown == sum(len(key) + compaction.ENTRY_BYTES for key in new)
    return latest


@every_module
@given(first=batches(), second=batches())
def test_latest_offset_of_each_key_is_noted(module, first, second):
    latest = noted(module, second, noted(module, first, {}))
    expected = {}
    for record in (*iterate(first), *iterate(second)):
        if record.key is not None:
            expected[record.key] = record.offset
    assert sorted(latest.values()) == sorted(expected.values())
    assert {key: offset for key, offset in latest.items() if len(key) < LONG} == {
        key: offset for key, offset in expected.items() if len(key) < LONG
    }


@every_module
@given(batch=batches(), newer=batches(), data=st.data())
def test_records_without_a_newer_one_are_kept(module, batch, newer, data):
    records = list(iterate(batch))
    end = data.draw(st.sampled_from([0, records[0].offset + 1, records[-1].offset + 1]))
    latest = noted(module, batch, {})
    newest = {record.key: record.offset for record in records}
    if newer.base_offset > batch.last_offset:
        noted(module, newer, latest)
        newest |= {record.key: record.offset for record in iterate(newer)}
    kept, count, has_tombstone = module.select_kept(
        inflate(batch), batch.count, batch.base_offset, latest, end
    )
    expected = [
        record.key is None
        or (
            newest[record.key] == record.offset
            and not (record.value is None and record.offset < end)
        )
        for record in records
    ]
    assert (list(kept), count) == (expected, sum(expected))
    assert has_tombstone == any(
        is_kept and record.value is None and record.key is not None
        for record, is_kept in zip(records, expected, strict=True)
    )


@every_module
@given(batch=batches(), data=st.data(), offset_shift=SHIFTS, timestamp_shift=SHIFTS)
def test_kept_records_are_copied(module, batch, data, offset_shift, timestamp_shift):
    records = list(iterate(batch))
    kept = data.draw(st.lists(st.booleans(), min_size=len(records), max_size=len(records)))
    copied, least, greatest = module.copy_kept(
        inflate(batch), bytes(kept), offset_shift, timestamp_shift
    )
    left = [record for record, is_kept in zip(records, kept, strict=True) if is_kept]
    deltas = [record.timestamp_ms - batch.base_timestamp_ms for record in left]
    if left:
        assert (least, greatest) == (min(deltas), max(deltas))
    if offset_shift == timestamp_shift == 0:
        assert len(copied) <= len(inflate(batch))
    latest, again = {}, {}
    # What was copied is read again, with the shift taken back.
    module.note_latest(copied, len(left), batch.base_offset - offset_shift, latest)
    for record in left:
        if record.key is not None:
            again[record.key] = record.offset
    assert sorted(latest.values()) == sorted(again.values())
    back, _, _ = module.copy_kept(copied, b"\x01" * len(left), -offset_shift, -timestamp_shift)
    plain, _, _ = module.copy_kept(inflate(batch), bytes(kept), 0, 0)
    assert back == plain


@given(batch=batches(), data=st.data())
def test_damage_is_an_error_or_the_same_for_both(batch, data):
    damaged = bytearray(inflate(batch))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        damaged[place] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
    if data.draw(st.booleans()):
        del damaged[data.draw(st.integers(0, len(damaged) - 1)) :]
    results = []
    for module in MODULES.values():
        latest = {}
        try:
            module.note_latest(bytes(damaged), batch.count, 0, latest)
            selected = module.select_kept(bytes(damaged), batch.count, 0, latest, 0)
            results.append((latest, selected, module.copy_kept(bytes(damaged), selected[0], 0, 0)))
        except InvalidRecordError as error:
            results.append(str(error))
    assert results[0] == results[1]


@every_module
def test_a_count_beyond_the_data_takes_no_memory(module):
    """A byte for each record is allocated before the records are read."""
    records = inflate(BatchView(build([Record(0, 1, b"a", b"1")])))
    with pytest.raises(InvalidRecordError, match="records"):
        module.select_kept(records, 2**60, 0, {}, 0)
