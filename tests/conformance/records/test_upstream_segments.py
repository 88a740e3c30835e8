"""Reads record batches from segments written by KafScale 1.6 (Go), with all codecs."""

import json
from itertools import groupby
from pathlib import Path

import pytest

from kafscale.records import Codec, iterate, split

FIXTURES = Path(__file__).parents[2] / "fixtures" / "upstream-1.6"
CREATED_MS = 1_700_000_000_000
SEGMENT_HEADER_BYTES = 32
SEGMENT_FOOTER_BYTES = 16


Row = tuple[int, bytes | None, bytes | None]


def expected() -> dict[str, list[Row]]:
    """Offset, key and value; the times in the list are those of responses, not of records."""
    rows = json.loads((FIXTURES / "records.json").read_text())
    return {
        topic: [(row["offset"], unhex(row["key"]), unhex(row["value"])) for row in group]
        for topic, group in groupby(rows, lambda row: row["topic"])
    }


def unhex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)
def test_every_record_of_a_partition_is_read(codec):
    topic = f"fixture-{codec.name.lower()}"
    result: list[Row] = []
    timestamps_ms: list[int] = []
    codecs = set()
    for segment in sorted((FIXTURES / "production" / topic / "0").glob("*.kfs")):
        data = segment.read_bytes()[SEGMENT_HEADER_BYTES:-SEGMENT_FOOTER_BYTES]
        for batch in split(data):
            batch.validate()
            codecs.add(batch.codec)
            records = list(iterate(batch))
            result += [(record.offset, record.key, record.value) for record in records]
            timestamps_ms += [record.timestamp_ms for record in records]
            assert batch.max_timestamp_ms == records[-1].timestamp_ms
    # Three rounds of 150 records, one millisecond apart; rounds are one second apart.
    rounds = [divmod(offset, 150) for offset, _, _ in result]
    assert timestamps_ms == [CREATED_MS + 1000 * number + index for number, index in rounds]
    assert result == expected()[topic]
    assert codec in codecs
