"""Finds, summarizes, describes and verifies objects in files.

The results are the JSON data that `kafscale segment` prints. Files are memory-mapped, so a summary
reads only the two ends of a large file.
"""

import mmap
import os
from base64 import b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kafscale.errors import DamagedObjectError, KafscaleError, RecordsError
from kafscale.records import BatchView, Record, iterate, split
from kafscale.storage.formats import index, object_keys, segment, verification, wal_object

KINDS = {
    object_keys.SEGMENT_SUFFIX: "segment",
    object_keys.INDEX_SUFFIX: "index",
    object_keys.WAL_SUFFIX: "wal",
}

Data = dict[str, Any]


def find(paths: Sequence[Path]) -> list[Path]:
    """The object files among the paths and in the directories, sorted by name."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            files += sorted(_walk(path))
        elif path.is_file():
            if path.suffix not in KINDS:
                raise KafscaleError(
                    f"{path}: unknown file type; expected one of {', '.join(KINDS)}"
                )
            files.append(path)
        else:
            raise KafscaleError(f"{path}: no such file or directory")
    return files


def _walk(directory: Path) -> Iterator[Path]:
    for parent, directories, names in os.walk(directory):
        # Hidden directories hold incomplete files.
        directories[:] = [name for name in directories if not name.startswith(".")]
        yield from (Path(parent, name) for name in names if Path(name).suffix in KINDS)


def without_index(paths: Sequence[Path]) -> list[Path]:
    """The segments without an index file."""
    return [
        path
        for path in paths
        if path.suffix == object_keys.SEGMENT_SUFFIX
        and not path.with_suffix(object_keys.INDEX_SUFFIX).is_file()
    ]


def open_file(path: Path) -> memoryview:
    """Memory-map a file."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return memoryview(b"")  # mmap rejects empty files.
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise KafscaleError(f"{path}: {error.strerror}") from None


# --- summaries ------------------------------------------------------------------------------------


def summarize(path: Path) -> Data:
    """Summarize an object by its header and footer, without verifying it."""
    buffer = open_file(path)
    summary: Data = {"path": str(path), "kind": KINDS[path.suffix], "sizeBytes": len(buffer)}
    try:
        match path.suffix:
            case object_keys.SEGMENT_SUFFIX:
                return summary | _segment_summary(str(path), buffer)
            case object_keys.INDEX_SUFFIX:
                return summary | _index_summary(index.decode(str(path), buffer))
            case _:
                return summary | _wal_summary(str(path), buffer)
    except DamagedObjectError as error:
        return {**summary, "damage": error.reason}


def _segment_summary(key: str, buffer: memoryview) -> Data:
    header = segment.decode_header(key, buffer)
    footer = segment.decode_footer(key, buffer[segment.HEADER_BYTES :])
    return {
        "baseOffset": header.base_offset,
        "lastOffset": footer.last_offset,
        "recordCount": header.count,
        "createdMs": header.created_ms,
        "flags": header.flags,
        "checksum": f"{footer.checksum:08x}",
    }


def _index_summary(decoded: index.Index) -> Data:
    return {
        "baseOffset": decoded.offsets[0],
        "entryCount": len(decoded),
        "maxTimestampMs": decoded.max_timestamp_ms,
        "priorMaxTimestampMs": decoded.prior_max_timestamp_ms,
        "sections": {
            magic.decode("ascii", "backslashreplace"): len(content)
            for magic, content in decoded.sections.items()
        },
    }


def _wal_summary(key: str, buffer: memoryview) -> Data:
    header, ranges = wal_object.salvage(key, buffer)
    return {
        "brokerId": header.broker_id,
        "epoch": header.epoch,
        "sequence": header.sequence,
        "fence": header.is_fence,
        "createdMs": header.created_ms,
        "trimmedTo": header.trimmed_to,
        "rangeCount": len(ranges),
    }


# --- contents -------------------------------------------------------------------------------------


def describe(path: Path, *, records: bool) -> Data:
    """The full content of an object; for a damaged segment, the damage and what is readable."""
    key, buffer = str(path), open_file(path)
    summary = summarize(path)
    try:
        verify_file(path)
    except DamagedObjectError as error:
        summary["damage"] = error.reason
    match path.suffix:
        case object_keys.SEGMENT_SUFFIX:
            try:
                batches = segment.read(key, buffer).batches
            except DamagedObjectError:
                batches = segment.salvage(buffer)
            described = _batches(batches, segment.HEADER_BYTES, records=records)
            return summary | {"batches": described}
        case object_keys.INDEX_SUFFIX:
            decoded = index.decode(key, buffer)
            return summary | {"entries": _entries(decoded)}
        case _:
            read = wal_object.decode(key, buffer)
            ranges = [_range(read, each, records=records) for each in read.ranges]
            return summary | {"ranges": ranges}


def _batches(batches: Sequence[BatchView], position: int, *, records: bool) -> list[Data]:
    described = []
    for batch in batches:
        described.append(
            {
                "position": position,
                "sizeBytes": len(batch),
                "baseOffset": batch.base_offset,
                "lastOffset": batch.last_offset,
                "recordCount": batch.count,
                "codec": batch.codec.name.lower(),
                "timestampType": batch.timestamp_type.name.lower(),
                "baseTimestampMs": batch.base_timestamp_ms,
                "maxTimestampMs": batch.max_timestamp_ms,
                "producerId": batch.producer_id,
                "producerEpoch": batch.producer_epoch,
                "baseSequence": batch.base_sequence,
                "leaderEpoch": batch.leader_epoch,
                "transactional": batch.is_transactional,
                "control": batch.is_control,
                **({"records": [_record(each) for each in iterate(batch)]} if records else {}),
            }
        )
        position += len(batch)
    return described


def _record(record: Record) -> Data:
    return {
        "offset": record.offset,
        "timestampMs": record.timestamp_ms,
        "key": _value(record.key),
        "value": _value(record.value),
        "headers": [{"key": key, "value": _value(value)} for key, value in record.headers],
    }


def _value(value: bytes | None) -> str | Data | None:
    """UTF-8 as a string; other bytes as `{"base64": ...}`."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}


def _entries(decoded: index.Index) -> list[Data]:
    times = decoded.max_timestamps or [None] * len(decoded)
    return [
        {"offset": offset, "position": position, "maxTimestampMs": time_ms}
        for offset, position, time_ms in zip(decoded.offsets, decoded.positions, times, strict=True)
    ]


def _range(read: wal_object.WalObject, each: wal_object.Range, *, records: bool) -> Data:
    return {
        "topicId": each.topic_id.hex(),
        "topic": each.topic,
        "partition": each.partition,
        "position": each.position,
        "sizeBytes": each.length,
        "baseOffset": each.base_offset,
        "lastOffset": each.last_offset,
        "maxTimestampMs": each.max_timestamp_ms,
        "batches": _batches(split(read.body(each)), each.position, records=records),
    }


def verify_file(path: Path) -> None:
    """Raise `DamagedObjectError` if an object is damaged, or differs from its name or segment."""
    key, buffer = str(path), open_file(path)
    if path.suffix == object_keys.WAL_SUFFIX:
        wal_ref = object_keys.parse_wal(*_namespace_and_key(path, 5))
        verification.verify_wal_object(key, buffer, wal_ref)
        return
    ref = object_keys.parse_segment(*_namespace_and_key(path, 4))
    base_offset = None if ref is None else ref.base_offset
    if path.suffix == object_keys.SEGMENT_SUFFIX:
        verification.verify_segment(key, buffer, base_offset)
    else:
        verification.verify_index(key, buffer, base_offset, _batches_of_index(path))


def _namespace_and_key(path: Path, parts_count: int) -> tuple[str, str]:
    """The namespace and the object key, if the file is in the directories of its key."""
    parts = path.absolute().parts[-parts_count:]
    return parts[0], "/".join(parts)


def _batches_of_index(path: Path) -> Sequence[BatchView]:
    """The batches of the segment of an index; none if there is no segment, or it is damaged."""
    segment_path = path.with_suffix(object_keys.SEGMENT_SUFFIX)
    if not segment_path.is_file():
        return ()
    buffer = open_file(segment_path)
    try:
        return split(buffer[segment.HEADER_BYTES : -segment.FOOTER_BYTES])
    except RecordsError:
        return ()  # The damage is reported for the segment itself.
