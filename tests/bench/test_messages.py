"""How fast the console looks through records: a filter that finds nothing pays for all of them."""

import json
from functools import partial
from typing import Any

import pytest

from kafscale.admin.messages.browse import FILTERED_BYTES_MAX, SECONDS_MAX
from kafscale.admin.messages.codecs import Codecs
from kafscale.admin.messages.filter import Sieve
from kafscale.admin.messages.query import Filter, Reading
from kafscale.admin.messages.renderer import Lens
from kafscale.admin.messages.scan import Scanned, Stretch, scan
from kafscale.records import BatchView, Codec, Record, build

pytestmark = pytest.mark.bench

BATCH_COUNT = 16
RECORD_COUNT = 250
BYTES_PER_SECOND_MIN = FILTERED_BYTES_MAX / SECONDS_MAX
"""So that a page ends because it has looked at enough, not because its time is over."""

FILTERS = {
    "text": Filter(text="needle"),
    "text beyond ASCII": Filter(text="nädel"),
    "key": Filter(key="needle"),
    "field that is nowhere": Filter(json_path="needle"),
    "field that is another": Filter(json_path="number", json_equals="-1"),
}


def batch(number: int, codec: Codec) -> BatchView:
    """Records of about a kilobyte."""
    base = number * RECORD_COUNT
    records = [
        Record(
            offset,
            1_700_000_000_000,
            b"key-%d" % offset,
            json.dumps({"number": offset, "words": f"{offset * 7919} " * 80}).encode(),
        )
        for offset in range(base, base + RECORD_COUNT)
    ]
    return BatchView(build(records, codec=codec))


def look(batches: list[BatchView], sieve: Sieve) -> Scanned:
    return scan(batches, sieve, Stretch(0, 0, 10**9, 50, newest=True))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4, Codec.ZSTD], ids=lambda each: each.name)
def test_scanning_speed(bench: Any, codec: Codec) -> None:
    batches = [batch(number, codec) for number in range(BATCH_COUNT)]
    size_bytes = sum(len(batch(number, Codec.NONE)) for number in range(BATCH_COUNT))
    lens = Lens(Reading(), Codecs())
    for name, wanted in FILTERS.items():
        sieve = Sieve(wanted, lens, lens)
        assert look(batches, sieve).matches == []
        seconds = bench.measure(
            f"look for a {name} in {codec.name}",
            partial(look, batches, sieve),
            size_bytes=size_bytes,
        )
        assert size_bytes / seconds >= BYTES_PER_SECOND_MIN
