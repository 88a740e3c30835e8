"""Compares record batches with aiokafka and kafka-python, in both directions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import aiokafka.codec
import aiokafka.record.default_records
import aiokafka.record.legacy_records
import aiokafka.record.memory_records
import kafka.codec
import kafka.record.default_records
import kafka.record.legacy_records
import kafka.record.memory_records
import pytest

from conformance.records.samples import SAMPLES, without_headers
from doubles.end_marker import ControlType, build_end_marker
from kafscale.records import (
    BatchView,
    Codec,
    Header,
    Record,
    build,
    down_convert,
    iterate,
    single_batch,
    up_convert,
)
from kafscale.records.message_set import read

BATCH_BYTES = 10_000_000


@dataclass(frozen=True)
class Judge:
    """The record classes of a client; both clients have the same ones."""

    name: str
    batch_builder: Callable[..., Any]
    set_builder: Callable[..., Any]
    reader: Callable[[bytes], Any]
    codecs: frozenset[Codec]

    def build(self, records: list[Record], codec: Codec, **fields: int) -> bytes:
        state = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1} | fields
        builder = self.batch_builder(
            magic=2,
            compression_type=int(codec),
            is_transactional=fields.get("is_transactional", 0),
            producer_id=state["producer_id"],
            producer_epoch=state["producer_epoch"],
            base_sequence=state["base_sequence"],
            batch_size=BATCH_BYTES,
        )
        for record in records:
            headers = [(header.key, header.value) for header in record.headers]
            builder.append(record.offset, record.timestamp_ms, record.key, record.value, headers)
        return bytes(builder.build())

    def build_set(self, records: list[Record], codec: Codec, magic: int) -> bytes:
        builder = self.set_builder(magic=magic, compression_type=int(codec), batch_size=BATCH_BYTES)
        for record in records:
            builder.append(record.offset, record.timestamp_ms, record.key, record.value)
        return bytes(builder.build())

    def read(self, data: bytes) -> Iterator[Record]:
        batches = self.reader(data)
        while batches.has_next():
            batch = batches.next_batch()
            assert batch.validate_crc()
            for record in batch:
                headers = tuple(Header(key, value) for key, value in record.headers)
                time = -1 if record.timestamp is None else record.timestamp
                yield Record(record.offset, time, record.key, record.value, headers)


def available(codec_module: Any) -> frozenset[Codec]:
    checks = {
        Codec.GZIP: codec_module.has_gzip,
        Codec.SNAPPY: codec_module.has_snappy,
        Codec.LZ4: codec_module.has_lz4,
        Codec.ZSTD: codec_module.has_zstd,
    }
    return frozenset({Codec.NONE} | {codec for codec, check in checks.items() if check()})


AIOKAFKA = Judge(
    "aiokafka",
    aiokafka.record.default_records.DefaultRecordBatchBuilder,
    aiokafka.record.legacy_records.LegacyRecordBatchBuilder,
    aiokafka.record.memory_records.MemoryRecords,
    available(aiokafka.codec),
)
KAFKA_PYTHON = Judge(
    "kafka-python",
    kafka.record.default_records.DefaultRecordBatchBuilder,
    kafka.record.legacy_records.LegacyRecordBatchBuilder,
    kafka.record.memory_records.MemoryRecords,
    available(kafka.codec),
)
JUDGES = [AIOKAFKA, KAFKA_PYTHON]

every_judge_and_codec = pytest.mark.parametrize(
    ("judge", "codec"),
    [
        pytest.param(judge, codec, id=f"{judge.name}-{codec.name}")
        for judge in JUDGES
        for codec in sorted(judge.codecs)
    ],
)
every_judge_and_legacy_format = pytest.mark.parametrize(
    ("judge", "codec", "magic"),
    [
        pytest.param(judge, codec, magic, id=f"{judge.name}-{codec.name}-{magic}")
        for judge in JUDGES
        for codec in sorted(judge.codecs - {Codec.ZSTD})
        for magic in (0, 1)
        if (codec, magic) != (Codec.LZ4, 0)  # Rejected by aiokafka; compared with librdkafka.
    ],
)
every_judge = pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.name)
every_magic = pytest.mark.parametrize("magic", [0, 1])
every_sample = pytest.mark.parametrize("records", SAMPLES.values(), ids=SAMPLES)


def test_clients_support_the_expected_codecs() -> None:
    assert AIOKAFKA.codecs == frozenset(Codec)
    assert KAFKA_PYTHON.codecs == frozenset(Codec)


@every_sample
@every_judge_and_codec
def test_client_batch_is_valid_and_read(judge: Judge, codec: Codec, records: list[Record]) -> None:
    batch = single_batch(judge.build(records, codec))
    batch.validate()
    assert list(iterate(batch)) == records
    assert batch.max_timestamp_ms == max(record.timestamp_ms for record in records)


@every_sample
@every_judge_and_codec
def test_clients_read_our_batch(judge: Judge, codec: Codec, records: list[Record]) -> None:
    assert list(judge.read(bytes(build(records, codec=codec)))) == records


@every_sample
@every_judge
def test_uncompressed_batches_are_identical(judge: Judge, records: list[Record]) -> None:
    ours, theirs = BatchView(build(records)), BatchView(bytearray(judge.build(records, Codec.NONE)))
    theirs.stamp(ours.base_offset, ours.leader_epoch)
    assert ours.buffer == theirs.buffer


@every_judge
def test_producer_fields_have_the_same_positions(judge: Judge) -> None:
    state = {"producer_id": 77, "producer_epoch": 3, "base_sequence": 2**31 - 2}
    batch = single_batch(judge.build(SAMPLES["mixed"], Codec.NONE, is_transactional=1, **state))
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch) == (77, 3)
    assert (batch.base_sequence, batch.last_sequence) == (2**31 - 2, 2)


@every_judge
def test_batch_with_assigned_offsets_is_read(judge: Judge) -> None:
    batch = BatchView(build(SAMPLES["mixed"], codec=Codec.GZIP))
    batch.stamp(10**12, 5)
    batch.stamp_append_time(1_800_000_000_000)
    records = list(judge.read(bytes(batch.buffer)))
    assert [record.offset for record in records] == list(range(10**12, 10**12 + 5))
    assert {record.timestamp_ms for record in records} == {1_800_000_000_000}


@every_judge
def test_end_marker_is_a_control_batch(judge: Judge) -> None:
    marker = build_end_marker(
        ControlType.ABORT, offset=9, timestamp_ms=1, producer_id=4, producer_epoch=0
    )
    batch = judge.reader(bytes(marker)).next_batch()
    assert batch.validate_crc()
    assert batch.is_control_batch
    assert batch.is_transactional
    assert next(iter(batch)).key == bytes(4)


# --- message sets ---------------------------------------------------------------------------------


@every_sample
@every_judge_and_legacy_format
def test_client_message_set_becomes_a_valid_batch(
    judge: Judge, codec: Codec, magic: int, records: list[Record]
) -> None:
    batch = BatchView(up_convert(judge.build_set(records, codec, magic)))
    batch.validate()
    assert batch.codec is codec
    assert list(iterate(batch)) == without_headers(records, timestamps=magic == 1)


@every_judge_and_legacy_format
def test_offsets_in_message_sets_agree(judge: Judge, codec: Codec, magic: int) -> None:
    data = judge.build_set(SAMPLES["mixed"], codec, magic)
    ours = [message.record.offset for message in read(data)]
    assert ours == [record.offset for record in judge.read(data)]


@every_sample
@every_magic
@every_judge
def test_clients_read_our_message_set(judge: Judge, magic: int, records: list[Record]) -> None:
    batch = BatchView(build(records, codec=Codec.ZSTD))
    batch.stamp(5_000_000_000, 1)
    data = down_convert([batch], magic)
    expected = [
        Record(5_000_000_000 + record.offset, record.timestamp_ms, record.key, record.value)
        for record in without_headers(records, timestamps=magic == 1)
    ]
    assert list(judge.read(bytes(data))) == expected


@every_magic
@every_judge
def test_uncompressed_message_sets_are_identical(judge: Judge, magic: int) -> None:
    ours = down_convert([BatchView(build(SAMPLES["mixed"]))], magic)
    assert ours == judge.build_set(SAMPLES["mixed"], Codec.NONE, magic)
