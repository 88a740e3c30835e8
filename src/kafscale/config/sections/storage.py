"""Settings of the WAL, segments and caches."""

from dataclasses import dataclass

from kafscale.config.schema import setting
from kafscale.config.types import Boolean, Duration, Float, Integer, Size
from kafscale.text.units import GIB, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS, TIB


@dataclass(frozen=True, kw_only=True)
class Storage:
    """How records become objects."""

    segment_bytes: int = setting(
        100 * MIB, Size(KIB, 2 * GIB - 1), variables=("KAFSCALE_SEGMENT_BYTES",)
    )
    """The size at which a segment is complete, in bytes. 100 MiB makes few, large objects that
    Spark reads well; positions inside a segment are signed 32-bit numbers, so 2 GiB is out of
    reach."""

    segment_buffer_bytes: int = setting(
        4 * MIB, Size(KIB, GIB), variables=("KAFSCALE_SEGMENT_BUFFER_BYTES",)
    )
    """How many bytes may wait in memory before they are written out. 4 MiB is large enough to make
    each upload worth its price."""

    index_interval_bytes: int = setting(4 * KIB, Size(64, GIB))
    """How many bytes of a segment lie between two entries of its index. 4 KiB, as in Kafka: a
    reader skips at most that much."""

    flush_interval_ms: int = setting(
        500, Duration(1, HOUR_MS), variables=("KAFSCALE_FLUSH_INTERVAL_MS",)
    )
    """How long the first waiting record may wait before it is written out. In milliseconds; 500
    keeps the number of uploads, and so the bill, low. Smaller answers producers sooner."""

    flush_messages: int = setting(10_000, Integer(1, 100_000_000))
    """How many records may wait in memory before they are written out. 10,000 bounds what is in
    flight when records are tiny."""

    wal_puts_per_second: float = setting(2.0, Float(0.01, 10_000.0))
    """How many WAL objects a second are written while producers could still wait: the bound of the
    bill for requests, whatever the number of partitions. 2 cost about 26 dollars a month on S3;
    more answer producers sooner. Objects that are full or late are written regardless. On local
    disk there is no such bound."""

    wal_puts_burst: int = setting(4, Integer(1, 10_000))
    """How many WAL objects may be written at once after a quiet time. 4 answers an occasional
    producer without delay."""

    wal_quiet_bytes: int = setting(MIB, Size(KIB, GIB))
    """From this size on a WAL object is written beyond the budget once nothing more comes: then all
    producers wait for it. 1 MiB costs at most half a cent for a GB on S3; with 256 KiB a single
    producer of small batches gets on several times as fast, for up to 2 cents."""

    wal_uploads_max: int = setting(8, Integer(1, 1024), key="maxWalUploads")
    """How many WAL objects are on their way at once. 8 keep a store busy whose answers take a
    tenth of a second."""

    wal_bytes_max: int = setting(GIB, Size(MIB, TIB), key="maxWalBytes")
    """How large the WAL may grow before the partitions that hold its oldest records are made into
    segments, in bytes. 1 GiB is read back within seconds when a broker starts after a crash."""

    buffer_bytes_max: int = setting(64 * MIB, Size(MIB, TIB), key="maxBufferBytes")
    """How many bytes may wait to become durable, over all partitions; beyond that, producers are
    told to try again. 64 MiB outlast a slow second of the store."""

    tail_bytes_max: int = setting(512 * MIB, Size(4 * MIB, TIB), key="maxTailBytes")
    """How much memory the newest records of all partitions may take. 512 MiB hold what consumers
    that keep up will read; beyond it the oldest are made into segments. Those are let go when
    `cache.segmentCacheSize` has no room for them either."""

    segment_age_ms_max: int = setting(
        10 * MINUTE_MS, Duration(SECOND_MS, 24 * HOUR_MS), key="maxSegmentAgeMs"
    )
    """How long records may wait for a segment, however few they are. In milliseconds; after 10
    minutes a record is where Spark and every reader of the open format finds it."""

    retention_check_interval_ms: int = setting(MINUTE_MS, Duration(100, 24 * HOUR_MS))
    """How often expired segments are looked for. In milliseconds; a minute is soon enough for
    retention that is counted in hours."""

    producer_id_expiration_ms: int = setting(24 * HOUR_MS, Duration(SECOND_MS, 365 * 24 * HOUR_MS))
    """How long an idempotent producer is remembered after its last batch. In milliseconds; a day,
    as in Kafka, is far longer than any producer tries a batch again."""

    local_fsync: bool = setting(False, Boolean(), variables=("KAFSCALE_LOCAL_FSYNC",))
    """Whether an object on local disk is forced to the disk before it counts as durable. Acks
    survive a crash of the broker in any case; with true also a loss of power. False, the default,
    promises what a single Kafka broker promises, and was 1.4 times as fast with small batches; a
    bucket needs neither."""

    produce_sync_flush: bool = setting(False, Boolean(), variables=("KAFSCALE_PRODUCE_SYNC_FLUSH",))
    """Whether producers with acks=1 also wait until their records are durable. False, because a
    producer that wants this says acks=all."""


@dataclass(frozen=True, kw_only=True)
class Cache:
    """What is kept in memory for readers."""

    segment_cache_bytes: int = setting(
        2 * GIB,
        Size(MIB, TIB),
        key="segmentCacheSize",
        variables=("KAFSCALE_CACHE_BYTES", "KAFSCALE_CACHE_SIZE"),
    )
    """How many bytes of segments are kept in memory. 2 GiB holds the records that consumers are
    about to read; a hit saves a request to the store. Up to a quarter of it is taken by records
    that were made into segments but not let go yet, before blocks that were read: with
    `storage.maxTailBytes`, it bounds what a broker holds of records."""

    index_cache_bytes: int = setting(256 * MIB, Size(MIB, TIB), key="indexCacheSize")
    """How many bytes of indexes are kept in memory. 256 MiB is enough for the indexes of several
    hundred full segments; every read outside the newest records needs one first."""

    read_ahead_segments: int = setting(
        3, Integer(0, 1000), variables=("KAFSCALE_READAHEAD_SEGMENTS",)
    )
    """How many of the following segments are fetched while a reader moves forward. 3 hides the
    latency of the store; 0 fetches only what is asked for."""
