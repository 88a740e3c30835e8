"""Batches looked through: nothing that is wanted is missed, and nothing costs too much."""

import json

import cramjam
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafscale.admin.messages.codecs import Codecs
from kafscale.admin.messages.filter import Sieve
from kafscale.admin.messages.query import Filter, Reading
from kafscale.admin.messages.renderer import Lens
from kafscale.admin.messages.scan import BATCH_RECORDS_MAX, Stretch, scan
from kafscale.records import BatchView, Codec, ControlType, Header, Record, build, build_end_marker
from kafscale.records.batch import COUNT_POSITION, LAST_OFFSET_DELTA_POSITION


def sieve(keys="auto", values="auto", /, **wanted):
    codecs = Codecs()
    return Sieve(
        Filter(**wanted), Lens(Reading(format=keys), codecs), Lens(Reading(format=values), codecs)
    )


def batch(*records, codec=Codec.NONE):
    return BatchView(build(records, codec=codec))


def record(offset, value=b"v", key=None, headers=()):
    return Record(offset, 1000 + offset, key, value, tuple(headers))


def offsets(scanned):
    return [match.record.offset for match in scanned.matches]


def whole(keep=100, newest=False):
    return Stretch(0, 0, 10**9, keep, newest)


WORDS = st.sampled_from(["a", "A", "ab", "é", "É", "x.y", "\\u0061", "1", '"', "K"])
VALUES = st.one_of(
    st.none(),
    WORDS.map(str.encode),
    st.dictionaries(WORDS, WORDS | st.integers(0, 3), max_size=3).map(
        lambda value: json.dumps(value).encode()
    ),
    st.dictionaries(WORDS, st.lists(WORDS, max_size=2), max_size=2).map(
        lambda value: json.dumps(value, ensure_ascii=False).encode()
    ),
    st.binary(max_size=5),
)
RECORDS = st.lists(
    st.tuples(VALUES, VALUES, st.lists(st.tuples(WORDS, VALUES), max_size=2)),
    min_size=1,
    max_size=5,
)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "key": WORDS,
        "text": WORDS,
        "json_path": st.sampled_from(["a", "A", "é", "ab", '["x.y"]', "a[0]", "K.1"]),
        "json_equals": WORDS,
        "header": WORDS,
    },
)


@example([(None, b'{"l":["x"]}', [])], {"json_path": "l[0]"}, "auto", Codec.NONE)
@example([(None, b'{"\\u006c":1}', [])], {"json_path": "l"}, "auto", Codec.NONE)
@example(
    [(None, b'{"l":"\\u006c"}', [])], {"json_path": "l", "json_equals": "l"}, "auto", Codec.NONE
)
@example([(None, b'{"l":1e1}', [])], {"json_path": "l", "json_equals": "10"}, "auto", Codec.NONE)
@given(RECORDS, FILTERS, st.sampled_from(["auto", "text", "hex", "json"]), st.sampled_from(Codec))
def test_a_batch_that_is_left_out_holds_nothing_that_is_wanted(records, wanted, form, codec):
    made = [
        record(offset, value, key, [Header(name, content) for name, content in headers])
        for offset, (key, value, headers) in enumerate(records)
    ]
    wanting = sieve(form, form, **wanted)
    kept = [each.offset for each in made if wanting.keeps(each)]
    assert offsets(scan([batch(*made, codec=codec)], wanting, whole())) == kept


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        ({"key": "Key"}, True),
        ({"key": "key"}, False),
        ({"text": "KEY"}, True),
        ({"text": "CAFÉ"}, True),
        ({"text": "NAME"}, True),
        ({"text": "held"}, True),
        ({"text": "nowhere"}, False),
        ({"header": "name"}, True),
        ({"header": "nam"}, False),
        ({"json_path": "drink"}, True),
        ({"json_path": "drink", "json_equals": "café"}, True),
        ({"json_path": "drink", "json_equals": "tea"}, False),
        ({"json_path": "food"}, False),
        ({"json_path": "drink", "key": "other"}, False),
    ],
)
def test_all_that_is_wanted_has_to_hold(wanted, kept):
    value = '{"drink": "café"}'.encode()
    made = record(0, value, b"Key", [Header("name", b"held")])
    assert sieve(**wanted).keeps(made) is kept


def test_text_is_looked_for_in_what_is_shown_too():
    assert sieve("auto", "hex", text="7630").keeps(record(0, b"v0"))
    assert not sieve(text="7630").keeps(record(0, b"v0"))
    assert sieve("hex", text="6b").keeps(record(0, None, b"k"))
    assert sieve("hex", key="6b").keeps(record(0, None, b"k"))


def test_the_first_or_the_last_are_kept_and_more_is_said():
    batches = [batch(*(record(n) for n in range(base, base + 5))) for base in (0, 5, 10)]
    first = scan(batches, sieve(), Stretch(0, 2, 14, 3, newest=False))
    assert (offsets(first), first.is_cut) == ([2, 3, 4], True)
    last = scan(batches, sieve(), Stretch(0, 2, 14, 3, newest=True))
    assert (offsets(last), last.is_cut) == ([11, 12, 13], True)
    every = scan(batches, sieve(), Stretch(0, 2, 14, 12, newest=True))
    assert (offsets(every), every.is_cut) == (list(range(2, 14)), False)


def test_control_batches_are_passed_over():
    marker = build_end_marker(
        ControlType.COMMIT, offset=1, timestamp_ms=1, producer_id=1, producer_epoch=0
    )
    found = scan([batch(record(0)), BatchView(marker), batch(record(2))], sieve(), whole())
    assert offsets(found) == [0, 2]
    assert found.problems == []


def test_a_batch_that_cannot_be_read_costs_no_other():
    broken = bytearray(build([record(1)], codec=Codec.ZSTD))
    broken[-4:] = b"\xff\xff\xff\xff"
    found = scan([batch(record(0)), BatchView(broken), batch(record(2))], sieve(), whole())
    assert offsets(found) == [0, 2]
    assert len(found.problems) == 1
    assert "partition 0, offsets 1 to 1 cannot be read" in found.problems[0]


@pytest.mark.timeout(10)
@pytest.mark.parametrize("wanted", [{}, {"text": "needle"}])
def test_a_bomb_is_told_of_and_not_lit(wanted):
    bomb = bytearray(build([record(1)], codec=Codec.ZSTD)[:61])
    bomb += bytes(cramjam.zstd.compress(bytes(100 << 20)))
    bomb[8:12] = (len(bomb) - 12).to_bytes(4, "big")
    found = scan([BatchView(bomb), batch(record(2, b"needle"))], sieve(**wanted), whole())
    assert offsets(found) == [2]
    assert "more than" in found.problems[0]


def test_a_batch_of_more_records_than_may_be_looked_at_is_told_of():
    claim = bytearray(build([record(0)]))
    count = BATCH_RECORDS_MAX + 1
    claim[COUNT_POSITION : COUNT_POSITION + 4] = count.to_bytes(4, "big")
    claim[LAST_OFFSET_DELTA_POSITION : LAST_OFFSET_DELTA_POSITION + 4] = count.to_bytes(4, "big")
    found = scan([BatchView(claim)], sieve(), whole())
    assert offsets(found) == []
    assert "too many to look at" in found.problems[0]
