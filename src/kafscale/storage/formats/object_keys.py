"""Object keys: building and parsing.

    {namespace}/{topic}/{partition}/segment-{base offset:020d}.kfs     a segment, see `segment`
    {namespace}/{topic}/{partition}/segment-{base offset:020d}.index   its index, see `index`
    {namespace}/{topic}@{topic id}/{partition}/…                       the same, if a topic of that
                                                                       name was deleted before
    {namespace}/_wal/{broker}/{epoch:010d}/{sequence:020d}.kfw         a WAL object, `wal_object`
    {namespace}/{topic}/{partition}/log-start                          the log start offset, in
                                                                       decimal digits
    {namespace}/{topic}/{partition}/merged-{base:020d}-{end:020d}      the segment at `base` holds
                                                                       all offsets up to `end`
                                                                       and replaces those between
    {namespace}/{topic}/{partition}/transactions                       segments have batches of
                                                                       transactions
    {namespace}/_staging/{job}/{topic}/{partition}/…                   staged segments, see `swap`
    {namespace}/_catalog/topics.json                                   the topics, for readers
                                                                       without etcd
    {namespace}/_jobs/{job}/{start:013d}-{run}.json                    a job run, see `job_runs`
    {namespace}/_quarantine/{checksum:08x}/…                           a copy of an object that was
                                                                       damaged or out of place

Invariants: numbers are zero-padded, so that listings are in order of offsets, or of epochs and
sequences. A key that parses is exactly the key that its parts build, so no two keys mean the same
object. Other keys parse to None, and the caller decides whether to log them.
"""

import re
from typing import Final

import msgspec

from kafscale.text.topic_partition import topic_of_directory

SEGMENT_SUFFIX: Final = ".kfs"
INDEX_SUFFIX: Final = ".index"
LOG_START_NAME: Final = "log-start"
TRANSACTIONS_NAME: Final = "transactions"
WAL_SUFFIX: Final = ".kfw"

OBJECTS_DIRECTORY: Final = "objects"
"""The subdirectory of the data directory with the objects of an embedded Kafscale."""

WAL_DIRECTORY: Final = "_wal"
STAGING_DIRECTORY: Final = "_staging"
PROBE_DIRECTORY: Final = "_probe"
CATALOG_DIRECTORY: Final = "_catalog"
JOBS_DIRECTORY: Final = "_jobs"
QUARANTINE_DIRECTORY: Final = "_quarantine"
RESERVED_TOPICS: Final = frozenset(
    {
        WAL_DIRECTORY,
        STAGING_DIRECTORY,
        PROBE_DIRECTORY,
        CATALOG_DIRECTORY,
        JOBS_DIRECTORY,
        QUARANTINE_DIRECTORY,
    }
)
"""Directories next to topics in a namespace; topics must not have these names."""

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
EPOCH_MAX: Final = 10**10 - 1
"""Largest epoch with ten digits; larger ones would not sort."""

_NUMBER: Final = "0|[1-9][0-9]{0,9}"
_DIRECTORY: Final = "[a-zA-Z0-9._-]{1,249}(?:@[0-9a-f]{32})?"
_SEGMENT: Final = re.compile(rf"({_DIRECTORY})/({_NUMBER})/segment-([0-9]{{20}})(\.kfs|\.index)")
_MERGED: Final = re.compile(rf"({_DIRECTORY})/({_NUMBER})/merged-([0-9]{{20}})-([0-9]{{20}})")
_LOG_START: Final = re.compile(rf"({_DIRECTORY})/({_NUMBER})/{LOG_START_NAME}")
_TRANSACTIONS: Final = re.compile(rf"({_DIRECTORY})/({_NUMBER})/{TRANSACTIONS_NAME}")
_WAL: Final = re.compile(rf"_wal/({_NUMBER})/([0-9]{{10}})/([0-9]{{20}})\.kfw")
_JOB_RUN: Final = re.compile(r"_jobs/([a-z][a-z0-9-]{0,63})/([0-9]{13})-([0-9a-f]{8})\.json")


class SegmentRef(msgspec.Struct, frozen=True, gc=False):
    """The parts of the key of a segment or an index."""

    directory: str
    """The topic's name, with its id if the name was used before: see `topic_directory`."""
    partition: int
    base_offset: int
    is_index: bool

    @property
    def topic(self) -> str:
        return topic_of_directory(self.directory)


class MergedRef(msgspec.Struct, frozen=True, gc=False):
    """The parts of the key of an object that says how far a merged segment reaches."""

    directory: str
    partition: int
    base_offset: int
    end_offset: int

    @property
    def topic(self) -> str:
        return topic_of_directory(self.directory)


class ReplacedRef(msgspec.Struct, frozen=True, gc=False):
    """A segment or index that a merged segment has replaced, so that readers must ignore it."""

    segment: SegmentRef


class LogStartRef(msgspec.Struct, frozen=True, gc=False):
    """The parts of the key of a log start object."""

    directory: str
    partition: int

    @property
    def topic(self) -> str:
        return topic_of_directory(self.directory)


class TransactionsRef(msgspec.Struct, frozen=True, gc=False):
    """The parts of the key of the object of a partition whose segments have transactions."""

    directory: str
    partition: int

    @property
    def topic(self) -> str:
        return topic_of_directory(self.directory)


class WalRef(msgspec.Struct, frozen=True, gc=False):
    """The parts of the key of a WAL object."""

    broker_id: int
    epoch: int
    sequence: int


class JobRunRef(msgspec.Struct, frozen=True, gc=False):
    """The parts of the key of a job run."""

    job: str
    started_at_ms: int
    run: str


Ref = SegmentRef | ReplacedRef | MergedRef | LogStartRef | TransactionsRef | WalRef | JobRunRef


# --- building -------------------------------------------------------------------------------------


# Topics are given by their directories: see `topic_directory`.


def topic_prefix(namespace: str, directory: str) -> str:
    return f"{namespace}/{directory}/"


def partition_prefix(namespace: str, directory: str, partition: int) -> str:
    return f"{namespace}/{directory}/{partition}/"


def segment_key(namespace: str, directory: str, partition: int, base_offset: int) -> str:
    """The key of a segment.

    >>> segment_key("production", "orders", 0, 50000)
    'production/orders/0/segment-00000000000000050000.kfs'
    """
    return _segment_stem(namespace, directory, partition, base_offset) + SEGMENT_SUFFIX


def segment_name(base_offset: int) -> str:
    """The last part of the key of a segment.

    >>> segment_name(50000)
    'segment-00000000000000050000.kfs'
    """
    return _stem_name(base_offset) + SEGMENT_SUFFIX


def index_key(namespace: str, directory: str, partition: int, base_offset: int) -> str:
    return _segment_stem(namespace, directory, partition, base_offset) + INDEX_SUFFIX


def index_key_of(segment_key: str) -> str:
    """The key of the index of a segment."""
    return segment_key.removesuffix(SEGMENT_SUFFIX) + INDEX_SUFFIX


def directory_of(segment_key: str) -> str:
    """The topic directory of a segment.

    >>> directory_of("production/orders/0/segment-00000000000000050000.kfs")
    'orders'
    """
    return segment_key.rsplit("/", 3)[-3]


def log_start_key(namespace: str, directory: str, partition: int) -> str:
    return f"{partition_prefix(namespace, directory, partition)}{LOG_START_NAME}"


def transactions_key(namespace: str, directory: str, partition: int) -> str:
    """The key of the object that says that segments of a partition have transactions.

    It is written before the first of them, and sorts after the segments of its partition, so that a
    listing that shows such a segment shows it, too.
    """
    return f"{partition_prefix(namespace, directory, partition)}{TRANSACTIONS_NAME}"


def merged_key(
    namespace: str, directory: str, partition: int, base_offset: int, end_offset: int
) -> str:
    """The key of the object that says how far a merged segment reaches.

    It sorts before the segments of its partition, so that a listing shows it first.
    """
    assert 0 <= base_offset < end_offset <= INT64_MAX
    prefix = partition_prefix(namespace, directory, partition)
    return f"{prefix}merged-{base_offset:020d}-{end_offset:020d}"


def catalog_key(namespace: str) -> str:
    return f"{namespace}/{CATALOG_DIRECTORY}/topics.json"


def staging_directory(namespace: str, job: str) -> str:
    """The directory with the staged objects of a job; their keys continue as in a namespace."""
    return f"{namespace}/{STAGING_DIRECTORY}/{job}"


def staging_prefix(namespace: str, job: str, directory: str, partition: int) -> str:
    return partition_prefix(staging_directory(namespace, job), directory, partition)


def jobs_root(namespace: str) -> str:
    return f"{namespace}/{JOBS_DIRECTORY}/"


def job_run_key(namespace: str, job: str, started_at_ms: int, run: str) -> str:
    """The key of a job run.

    >>> job_run_key("production", "lake", 1700000000000, "0f0f0f0f")
    'production/_jobs/lake/1700000000000-0f0f0f0f.json'
    """
    key = f"{jobs_root(namespace)}{job}/{started_at_ms:013d}-{run}.json"
    assert parse_job_run(namespace, key) is not None, key
    return key


def quarantine_key(namespace: str, key: str, checksum: int) -> str:
    """The key of the copy of an object with this checksum.

    >>> quarantine_key("production", "production/orders/0/log-start", 10)
    'production/_quarantine/0000000a/orders/0/log-start'
    """
    return f"{namespace}/{QUARANTINE_DIRECTORY}/{checksum:08x}/{_relative_key(namespace, key)}"


def wal_root(namespace: str) -> str:
    return f"{namespace}/{WAL_DIRECTORY}/"


def wal_prefix(namespace: str, broker_id: int) -> str:
    return f"{wal_root(namespace)}{broker_id}/"


def stream_prefix(namespace: str, broker_id: int, epoch: int) -> str:
    assert 0 <= epoch <= EPOCH_MAX
    return f"{wal_prefix(namespace, broker_id)}{epoch:010d}/"


def wal_key(namespace: str, broker_id: int, epoch: int, sequence: int) -> str:
    """The key of a WAL object.

    >>> wal_key("production", 3, 17, 0)
    'production/_wal/3/0000000017/00000000000000000000.kfw'
    """
    assert 0 <= broker_id <= INT32_MAX
    assert 0 <= sequence <= INT64_MAX
    return f"{stream_prefix(namespace, broker_id, epoch)}{sequence:020d}{WAL_SUFFIX}"


# --- parsing --------------------------------------------------------------------------------------


def parse(namespace: str, key: str) -> Ref | None:
    """Parse a key into its parts; None if it is of no kind with a `Ref`."""
    return (
        parse_segment(namespace, key)
        or parse_wal(namespace, key)
        or _parse_log_start(namespace, key)
        or _parse_merged(namespace, key)
        or _parse_transactions(namespace, key)
        or parse_job_run(namespace, key)
    )


def parse_segment(namespace: str, key: str) -> SegmentRef | None:
    """Parse the key of a segment or an index; None if it is neither."""
    match = _SEGMENT.fullmatch(_relative_key(namespace, key))
    if match is None:
        return None
    directory, partition, base_offset = match[1], int(match[2]), int(match[3])
    if not _is_topic_partition(directory, partition) or base_offset > INT64_MAX:
        return None
    return SegmentRef(directory, partition, base_offset, is_index=match[4] == INDEX_SUFFIX)


def _parse_log_start(namespace: str, key: str) -> LogStartRef | None:
    """Parse the key of a log start object; None if it is not one."""
    match = _LOG_START.fullmatch(_relative_key(namespace, key))
    if match is None or not _is_topic_partition(match[1], int(match[2])):
        return None
    return LogStartRef(match[1], int(match[2]))


def _parse_merged(namespace: str, key: str) -> MergedRef | None:
    """Parse the key of an object that says how far a merged segment reaches; None if it is not."""
    match = _MERGED.fullmatch(_relative_key(namespace, key))
    if match is None or not _is_topic_partition(match[1], int(match[2])):
        return None
    base_offset, end_offset = int(match[3]), int(match[4])
    if not base_offset < end_offset <= INT64_MAX:
        return None
    return MergedRef(match[1], int(match[2]), base_offset, end_offset)


def _parse_transactions(namespace: str, key: str) -> TransactionsRef | None:
    match = _TRANSACTIONS.fullmatch(_relative_key(namespace, key))
    if match is None or not _is_topic_partition(match[1], int(match[2])):
        return None
    return TransactionsRef(match[1], int(match[2]))


def parse_staged(namespace: str, key: str) -> SegmentRef | None:
    """Parse the key of a staged segment or index; None if it is neither."""
    directory, _, rest = _relative_key(namespace, key).partition("/")
    _, _, name = rest.partition("/")
    return parse_segment("", f"/{name}") if directory == STAGING_DIRECTORY else None


def parse_wal(namespace: str, key: str) -> WalRef | None:
    """Parse the key of a WAL object; None if it is not one."""
    match = _WAL.fullmatch(_relative_key(namespace, key))
    if match is None:
        return None
    broker_id, epoch, sequence = int(match[1]), int(match[2]), int(match[3])
    if broker_id > INT32_MAX or sequence > INT64_MAX:
        return None
    return WalRef(broker_id, epoch, sequence)


def parse_job_run(namespace: str, key: str) -> JobRunRef | None:
    """Parse the key of a job run; None if it is not one."""
    match = _JOB_RUN.fullmatch(_relative_key(namespace, key))
    return None if match is None else JobRunRef(match[1], int(match[2]), match[3])


def _segment_stem(namespace: str, directory: str, partition: int, base_offset: int) -> str:
    assert directory not in RESERVED_TOPICS
    assert 0 <= partition <= INT32_MAX
    return partition_prefix(namespace, directory, partition) + _stem_name(base_offset)


def _stem_name(base_offset: int) -> str:
    assert 0 <= base_offset <= INT64_MAX
    return f"segment-{base_offset:020d}"


def _is_topic_partition(directory: str, partition: int) -> bool:
    topic = topic_of_directory(directory)
    is_topic = topic not in RESERVED_TOPICS and topic not in {".", ".."}
    return is_topic and partition <= INT32_MAX


def _relative_key(namespace: str, key: str) -> str:
    """The key without its namespace; empty if it is in another one."""
    prefix = f"{namespace}/"
    return key[len(prefix) :] if key.startswith(prefix) else ""
