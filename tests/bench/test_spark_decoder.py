"""The decoder alone: bytes of records a second and a core, checksums verified, into Arrow batches.

The figures are of the processor's time, the best of several rounds: what the code can do, and not
what the machine was busy with. Bytes are those of the records before compression.
"""

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from bench import results
from doubles.reference_decoder import ReferenceDecoder
from kafscale.records import BatchView, Codec, Header, Record, build, inflate, split
from kafscale.spark.codec import columns
from kafscale.spark.codec.columns import ALL, ALL_WITH_HEADERS
from kafscale.spark.codec.decoder import Decoder, warm_up

pytestmark = [pytest.mark.bench, pytest.mark.timeout(300)]

KIBIBYTE = 1024
SOURCE_BYTES = 24 * 1024 * KIBIBYTE
DISTINCT_COUNT = 8
"""The number of distinct batches; more would take longer without another result."""
ROUNDS = 7
END = 2**62
LARGE_BYTES_PER_SECOND_MIN = 1_200_000_000
SMALL_BYTES_PER_SECOND_MIN = 600_000_000


@dataclass(frozen=True)
class Figure:
    megabytes_per_second: float
    kilorecords_per_second: float


class Figures:
    def __init__(self) -> None:
        self.found: dict[str, Figure] = {}

    def measure(self, name: str, source: "Source", function: Callable[[], object]) -> float:
        """The bytes a second of the best round."""
        seconds = min(_cpu_seconds(function) for _ in range(ROUNDS))
        bytes_per_second = source.record_bytes / seconds
        self.found[name] = Figure(bytes_per_second / 1e6, source.count / seconds / 1e3)
        return bytes_per_second


@dataclass(frozen=True)
class Source:
    batches: list[BatchView]
    record_bytes: int
    count: int


def _cpu_seconds(function: Callable[[], object]) -> float:
    gc.collect()
    start = time.process_time()
    function()
    return time.process_time() - start


@pytest.fixture(scope="module")
def figures() -> Iterator[Figures]:
    warm_up()
    figures = Figures()
    yield figures
    table = Table("what", "MB/s", "thousand records/s", title="Decoder, a core")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, figure in figures.found.items():
        table.add_row(
            name, f"{figure.megabytes_per_second:,.0f}", f"{figure.kilorecords_per_second:,.0f}"
        )
    Console(width=100).print("\n", table)
    results.save("decoder", {name: asdict(figure) for name, figure in figures.found.items()})


def source_of(
    value_bytes: int,
    batch_bytes: int,
    codec: Codec = Codec.NONE,
    *,
    headers: tuple[Header, ...] = (),
    source_bytes: int = SOURCE_BYTES,
) -> Source:
    """Batches of words that shrink to about a half, one after the other in one buffer."""
    random = Random(0)
    words = [b"%d" % random.randrange(10**6) for _ in range(1000)]
    count = max(batch_bytes // (value_bytes + 22), 1)
    distinct = []
    for _ in range(DISTINCT_COUNT):
        records = []
        for offset in range(count):
            value = b" ".join(random.choices(words, k=value_bytes // 4 + 1))[:value_bytes]
            key = b"key-%06d" % offset
            records.append(Record(offset, 1_700_000_000_000 + offset, key, value, headers))
        distinct.append(BatchView(build(records, codec=codec)))
    joined = bytearray()
    record_bytes = batch_count = 0
    while record_bytes < source_bytes:
        batch = distinct[batch_count % DISTINCT_COUNT]
        batch.stamp(batch_count * count, 0)
        joined += batch.buffer
        record_bytes += len(inflate(batch))
        batch_count += 1
    return Source(split(bytes(joined)), record_bytes, batch_count * count)


def all_of(decoder: Decoder, source: Source) -> int:
    """Decode everything in parts, each of which is dropped before the next, as a task does it."""
    parts = decoder.decode_in_parts("key", "topic", 0, source.batches, 0, END)
    return sum(part.num_rows for part in parts)


@pytest.mark.parametrize("batch_bytes", [16 * KIBIBYTE, 256 * KIBIBYTE], ids="{} B".format)
@pytest.mark.parametrize(
    ("value_bytes", "bytes_per_second_min"),
    [(KIBIBYTE, LARGE_BYTES_PER_SECOND_MIN), (100, SMALL_BYTES_PER_SECOND_MIN)],
)
def test_uncompressed(figures, value_bytes, bytes_per_second_min, batch_bytes):
    source = source_of(value_bytes, batch_bytes)
    decoder = Decoder(ALL)
    assert all_of(decoder, source) == source.count
    name = f"values of {value_bytes} B, batches of {batch_bytes // KIBIBYTE} KiB"
    speed = figures.measure(name, source, lambda: all_of(decoder, source))
    assert speed >= bytes_per_second_min


@pytest.mark.parametrize("desired", ["offset", "value", "key,value,headers"])
def test_some_columns(figures, desired):
    source = source_of(100, 256 * KIBIBYTE, headers=(Header("trace", b"01234567"),))
    decoder = Decoder(columns.parse(desired))
    name = f"values of 100 B and a header, only {desired}"
    assert figures.measure(name, source, lambda: all_of(decoder, source)) > 100_000_000


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec], ids=lambda codec: codec.name)
@pytest.mark.parametrize("value_bytes", [KIBIBYTE, 100])
def test_compressed(figures, value_bytes, codec):
    source = source_of(value_bytes, 256 * KIBIBYTE, codec)
    decoder = Decoder(ALL)
    name = f"values of {value_bytes} B, batches of 256 KiB, {codec.name.lower()}"
    assert figures.measure(name, source, lambda: all_of(decoder, source)) > 50_000_000


def test_a_record_a_batch(figures):
    """What producers without a linger make: here the cost is that of batches."""
    source = source_of(100, 1, source_bytes=SOURCE_BYTES // 8)
    decoder = Decoder(ALL)
    name = "values of 100 B, one a batch"
    assert figures.measure(name, source, lambda: all_of(decoder, source)) > 10_000_000


def test_the_plain_twin(figures):
    source = source_of(100, 256 * KIBIBYTE, source_bytes=KIBIBYTE * KIBIBYTE)
    arguments: tuple[Any, ...] = ("key", "topic", 0, source.batches, 0, END)
    twin = ReferenceDecoder(ALL_WITH_HEADERS)
    name = "values of 100 B, batches of 256 KiB, in plain Python"
    assert figures.measure(name, source, lambda: twin.decode(*arguments)) > 0
