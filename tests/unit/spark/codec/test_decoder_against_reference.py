"""The compiled decoder agrees with the reference decoder, for valid and malformed batches."""

import json
from itertools import groupby
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doubles.reference_decoder import ReferenceDecoder
from kafscale.errors import DamagedObjectError
from kafscale.records import BatchView, Codec
from kafscale.spark.codec import columns
from kafscale.spark.codec.columns import ALL_WITH_HEADERS, NAMES, Columns
from kafscale.spark.codec.decoder import Decoder
from kafscale.storage.formats import segment
from unit.spark.codec.batch_samples import batch_runs, malformed_batch

pytestmark = pytest.mark.timeout(120)  # The first test may compile the kernel.

FIXTURES = Path(__file__).parents[3] / "fixtures" / "upstream-1.6"
CREATED_MS = 1_700_000_000_000
column_selections = st.sets(st.sampled_from(NAMES), min_size=1).map(
    lambda names: columns.parse(",".join(names))
)


@st.composite
def ranges(draw, batches):
    """Two offsets near those of the batches, and sometimes a timestamp."""
    first = batches[0].base_offset if batches else 0
    last = batches[-1].last_offset if batches else 0
    nearby = st.integers(max(first - 3, 0), last + 3)
    since_ms = draw(st.none() | st.integers(-1, 2**43))
    return draw(nearby), draw(nearby | st.just(2**63)), since_ms


@given(data=st.data(), batches=batch_runs(), selected=st.just(ALL_WITH_HEADERS) | column_selections)
@settings(max_examples=300)
def test_valid_batches_decode_alike(data, batches, selected):
    start, end, since_ms = data.draw(ranges(batches))
    arguments = ("key", "tópic", 3, batches, start, end)
    decoder = Decoder(selected)
    compiled = decoder.decode(*arguments, since_ms=since_ms)
    reference = ReferenceDecoder(selected).decode(*arguments, since_ms=since_ms)
    compiled.validate(full=True)
    assert compiled.equals(reference)
    part_bytes = data.draw(st.integers(1, 500))
    parts = list(decoder.decode_in_parts(*arguments, since_ms=since_ms, part_bytes=part_bytes))
    assert all(part.num_rows for part in parts)
    assert pa.Table.from_batches(parts, selected.schema).equals(pa.Table.from_batches([reference]))


def outcome(decoder, batch, start, end):
    """Return the rows of a batch, or the reason of the error."""
    try:
        decoded = decoder.decode("key", "topic", 0, [batch], start, end)
    except DamagedObjectError as error:
        return error.reason
    decoded.validate(full=True)
    return decoded


@pytest.mark.parametrize("seed", range(4))
def test_malformed_batches_decode_or_fail_alike(seed):
    random = Random(seed)
    decoded_count = 0
    reasons = set()
    for _ in range(1500):
        selected = ALL_WITH_HEADERS if random.random() < 0.6 else Columns((random.choice(NAMES),))
        batch = malformed_batch(random)
        start = random.choice((0, 0, 1, 6, batch.base_offset))
        end = random.choice((2**63, 2**63, 2, 7, batch.base_offset + 2))
        compiled = outcome(Decoder(selected), batch, start, end)
        reference = outcome(ReferenceDecoder(selected), batch, start, end)
        assert compiled == reference, (seed, bytes(batch.buffer).hex())
        if isinstance(compiled, str):
            reasons.add("".join(character for character in compiled if character.isalpha()))
        else:
            decoded_count += bool(compiled.num_rows)
    assert decoded_count > 50
    assert len(reasons) > 10


@given(noise=st.binary(max_size=200), batches=batch_runs(count_max=1))
@settings(max_examples=100)
def test_random_payloads_decode_or_fail_alike(noise, batches):
    for original in batches:
        batch = BatchView(bytearray(original.buffer))
        batch.buffer[61 : 61 + len(noise)] = noise[: len(batch) - 61]
        batch.write_checksum()
        end = batch.last_offset + 1
        compiled = outcome(Decoder(ALL_WITH_HEADERS), batch, 0, end)
        assert compiled == outcome(ReferenceDecoder(ALL_WITH_HEADERS), batch, 0, end)


def unhex(text):
    return None if text is None else bytes.fromhex(text)


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)
def test_segments_of_kafscale_1_6_decode_to_their_records(codec):
    topic = f"fixture-{codec.name.lower()}"
    rows = json.loads((FIXTURES / "records.json").read_text())
    (expected,) = (
        list(group) for name, group in groupby(rows, lambda row: row["topic"]) if name == topic
    )
    result = []
    next_offset = 0
    for path in sorted((FIXTURES / "production" / topic / "0").glob("*.kfs")):
        read = segment.read(path.name, path.read_bytes())
        end = read.footer.last_offset + 1
        decoder = Decoder(ALL_WITH_HEADERS)
        decoded = decoder.decode(path.name, topic, 0, read.batches, next_offset, end)
        result += decoded.to_pylist()
        next_offset = end
    assert [
        (row["topic"], row["partition"], row["offset"], row["key"], row["value"]) for row in result
    ] == [(topic, 0, row["offset"], unhex(row["key"]), unhex(row["value"])) for row in expected]
    # Three rounds of 150 records, a millisecond apart, each a second after the other.
    rounds = [divmod(row["offset"], 150) for row in result]
    times_ms = [round(row["timestamp"].timestamp() * 1000) for row in result]
    assert times_ms == [CREATED_MS + 1000 * number + index for number, index in rounds]
    # records.json lacks the headers, which every third record has.
    assert [row["headers"] for row in result] == [
        [{"key": "h", "value": b"%d" % index}] if index % 3 == 0 else None for _, index in rounds
    ]
