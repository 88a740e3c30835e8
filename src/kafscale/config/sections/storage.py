"""Settings of the WAL, segments, their compression, retention and caches."""

from dataclasses import dataclass

from kafscale.config.schema import setting
from kafscale.config.types import Boolean, Choice, Duration, Float, Integer, Size
from kafscale.text.units import GIB, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS, TIB


@dataclass(frozen=True, kw_only=True)
class Storage:
    """How records are buffered and written to object storage."""

    segment_bytes: int = setting(
        100 * MIB, Size(KIB, 2 * GIB - 1), variables=("KAFSCALE_SEGMENT_BYTES",)
    )
    """The size at which a segment is rolled, in bytes. 100 MiB make few, large objects, which Spark
    reads efficiently. Positions in a segment are signed 32-bit numbers, so the limit is below 2
    GiB."""

    segment_buffer_bytes: int = setting(
        4 * MIB, Size(KIB, GIB), variables=("KAFSCALE_SEGMENT_BUFFER_BYTES",)
    )
    """The size at which the open WAL object is uploaded, in bytes. 4 MiB are large enough to be
    worth the price of a request."""

    index_interval_bytes: int = setting(4 * KIB, Size(64, GIB))
    """The distance between two entries of a segment's index, in bytes. 4 KiB, as in Kafka: a reader
    skips at most that many."""

    flush_interval_ms: int = setting(
        500, Duration(1, HOUR_MS), variables=("KAFSCALE_FLUSH_INTERVAL_MS",)
    )
    """The maximum time that a record waits in the buffer before it is uploaded. In milliseconds.
    500 keep the number of requests, and so the costs, low. Lower values reduce produce latency."""

    flush_messages: int = setting(10_000, Integer(1, 100_000_000))
    """The maximum number of records in the buffer before it is uploaded. 10,000 limit the number of
    unacknowledged records if records are tiny."""

    wal_puts_per_second: float = setting(2.0, Float(0.01, 10_000.0))
    """The rate of WAL uploads while producers can wait, whatever the number of partitions; it
    limits the costs of requests. 2 cost about 26 dollars per month on S3; higher values reduce
    produce latency. Full and overdue objects are uploaded regardless. Not used with local
    storage."""

    wal_puts_burst: int = setting(4, Integer(1, 10_000))
    """How many WAL objects may be uploaded at once after an idle time. With 4, occasional produce
    requests are not delayed."""

    wal_idle_flush_bytes: int = setting(MIB, Size(KIB, GIB))
    """The size from which a WAL object is uploaded beyond the rate as soon as no more records
    arrive, because then all producers wait for it. 1 MiB costs at most half a cent per GB on S3.
    With 256 KiB a single producer of small batches is several times as fast, for up to 2 cents per
    GB."""

    wal_uploads_max: int = setting(8, Integer(1, 1024), key="maxWalUploads")
    """The maximum number of concurrent WAL uploads. 8 are enough for a store with a latency of 100
    ms."""

    wal_bytes_max: int = setting(GIB, Size(MIB, TIB), key="maxWalBytes")
    """The size of the WAL at which the partitions with its oldest records are rolled to segments,
    in bytes. 1 GiB is replayed within seconds after a crash."""

    buffer_bytes_max: int = setting(64 * MIB, Size(MIB, TIB), key="maxBufferBytes")
    """The maximum size of records that are not durable yet, over all partitions; beyond it, produce
    requests fail with a retriable error. 64 MiB bridge a slow second of the store."""

    tail_bytes_max: int = setting(512 * MIB, Size(4 * MIB, TIB), key="maxTailBytes")
    """The memory for the newest records of all partitions, in bytes. 512 MiB hold what consumers
    without lag read; above the limit the oldest records are rolled to segments. Rolled records are
    evicted when `cache.segmentCacheSize` has no space for them."""

    segment_age_ms_max: int = setting(
        10 * MINUTE_MS, Duration(SECOND_MS, 24 * HOUR_MS), key="maxSegmentAgeMs"
    )
    """The maximum time until a record is in a segment, even if the segment is small. In
    milliseconds. After 10 minutes Spark and other readers of the storage format can read the
    record."""

    retention_check_interval_ms: int = setting(MINUTE_MS, Duration(100, 24 * HOUR_MS))
    """The interval of checks for expired segments. In milliseconds. A minute is precise enough for
    a retention of hours."""

    producer_id_expiration_ms: int = setting(24 * HOUR_MS, Duration(SECOND_MS, 365 * 24 * HOUR_MS))
    """How long the state of an idempotent producer is kept after its last batch. In milliseconds. A
    day, as in Kafka, is far longer than a producer retries."""

    local_fsync: bool = setting(False, Boolean(), variables=("KAFSCALE_LOCAL_FSYNC",))
    """Whether objects on local disk are synced before they count as durable. Acknowledged records
    survive a crash of the broker in any case; with true, they survive a power failure, too. False,
    the default, gives the durability of a single Kafka broker, and was 1.4 times as fast with small
    batches. Not needed with a bucket."""

    produce_sync_flush: bool = setting(False, Boolean(), variables=("KAFSCALE_PRODUCE_SYNC_FLUSH",))
    """Whether produce requests with acks=1 also wait until the records are durable. False, because
    producers that need this use acks=all."""


@dataclass(frozen=True, kw_only=True)
class Cache:
    """Caches for consumers."""

    segment_cache_bytes: int = setting(
        2 * GIB,
        Size(MIB, TIB),
        key="segmentCacheSize",
        variables=("KAFSCALE_CACHE_BYTES", "KAFSCALE_CACHE_SIZE"),
    )
    """The size of the block cache for segments, in bytes. 2 GiB hold the records that consumers are
    about to read; a hit saves a request to the store. Up to a quarter is used for rolled records
    that are still in memory, before blocks that were read. With `storage.maxTailBytes`, this limits
    the memory for records."""

    index_cache_bytes: int = setting(256 * MIB, Size(MIB, TIB), key="indexCacheSize")
    """The size of the index cache, in bytes. 256 MiB are enough for the indexes of several hundred
    full segments; every read outside the newest records needs an index."""

    read_ahead_segments: int = setting(
        3, Integer(0, 1000), variables=("KAFSCALE_READAHEAD_SEGMENTS",)
    )
    """How many segments after the one that is read are prefetched for a sequential reader, as far
    as `cache.readAheadBytes` allows. 3 hide the latency of the store if segments are small; 0
    disables read-ahead."""

    read_ahead_bytes: int = setting(12 * MIB, Size(0, 16 * GIB))
    """How many bytes are prefetched for a sequential reader, in this segment and the next ones, in
    blocks of 4 MiB. 12 MiB hide the latency of the store; fifty concurrent readers prefetch 600
    MiB."""


@dataclass(frozen=True, kw_only=True)
class Compression:
    """Compression of segments."""

    type: str = setting("snappy", Choice(("none", "gzip", "snappy", "lz4", "zstd")))
    """The codec for batches that arrive uncompressed, applied when a segment is written; compressed
    batches are stored as they are. `snappy` saves much space for little CPU time."""


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """Compaction of topics with `cleanup.policy=compact`, by the brokers that own their partitions.

    It is Kafka's log cleaner, and runs in a process of its own with a low priority.
    """

    enabled: bool = setting(True, Boolean(), variables=("KAFSCALE_COMPACTION_ENABLED",))
    """Whether brokers compact. With false, only the Spark job `compact` does. True, because topics
    of Kafka Connect, Kafka Streams and schema registries would grow for ever otherwise."""

    interval_ms: int = setting(15 * SECOND_MS, Duration(100, 24 * HOUR_MS))
    """How long a broker waits until it checks again which partitions are due. In milliseconds. 15
    seconds, as in Kafka."""

    memory_bytes_max: int = setting(128 * MIB, Size(MIB, 64 * GIB), key="maxMemoryBytes")
    """The memory for the keys of one partition, in bytes. 128 MiB, as in Kafka, are enough for some
    600,000 keys of 30 bytes; of more keys, a part is compacted at a time. The segments that are
    being compacted take more."""

    bytes_per_second: int = setting(32 * MIB, Size(64 * KIB, TIB))
    """How much a broker reads and writes for compaction, in bytes per second. 32 MiB leave most of
    a network connection to clients."""
