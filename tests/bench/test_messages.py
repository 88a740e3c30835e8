"""How fast the console scans records with a filter that matches none of them."""

import json
from functools import partial
from typing import Any

import pytest

from kafscale.admin.messages.browse import FILTERED_BYTES_MAX, SECONDS_MAX
from kafscale.admin.messages.codecs import SchemaCodecs
from kafscale.admin.messages.query import DisplayFormat, FilterSpec
from kafscale.admin.messages.renderer import PayloadRenderer
from kafscale.admin.messages.scan import RecordFilter, ScanRange, ScanResult, scan
from kafscale.records import BatchView, Codec, Record, build

pytestmark = pytest.mark.bench

BATCH_COUNT = 16
RECORD_COUNT = 250
BYTES_PER_SECOND_MIN = FILTERED_BYTES_MAX / SECONDS_MAX
"""A page should end by its byte limit, not by its time limit."""

FILTERS = {
    "text": FilterSpec(text="needle"),
    "text beyond ASCII": FilterSpec(text="nädel"),
    "key": FilterSpec(key="needle"),
    "field that is nowhere": FilterSpec(json_path="needle"),
    "field that is another": FilterSpec(json_path="number", json_equals="-1"),
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


def scan_all(batches: list[BatchView], record_filter: RecordFilter) -> ScanResult:
    return scan(batches, record_filter, ScanRange(0, 0, 10**9, 50, newest=True))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4, Codec.ZSTD], ids=lambda each: each.name)
def test_scanning_speed(bench: Any, codec: Codec) -> None:
    batches = [batch(number, codec) for number in range(BATCH_COUNT)]
    size_bytes = sum(len(batch(number, Codec.NONE)) for number in range(BATCH_COUNT))
    renderer = PayloadRenderer(DisplayFormat(), SchemaCodecs())
    for name, spec in FILTERS.items():
        record_filter = RecordFilter(spec, renderer, renderer)
        assert scan_all(batches, record_filter).matches == []
        seconds = bench.measure(
            f"scan for a {name} in {codec.name}",
            partial(scan_all, batches, record_filter),
            size_bytes=size_bytes,
        )
        assert size_bytes / seconds >= BYTES_PER_SECOND_MIN
