"""Settings of where things are kept: records in object storage, metadata in etcd, bytes in memory.

The law: nothing set means embedded, everything under one data directory on this machine; a store
that is named here is used, and never silently replaced by another. Half a cluster is refused by
`contradictions`.
"""

from dataclasses import dataclass, field

from kafscale.config.schema import setting
from kafscale.config.types import Choice, Decimal, Duration, Flag, Names, Number, Size, Text
from kafscale.text.units import GIB, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS, TIB

ENDPOINT = Text("of the form host:port or https://host:port", r"(https?://)?[^\s/@,]+:\d{1,5}")

_BUCKET = Text(
    "a bucket's name (3 to 63 small letters, digits, dots and hyphens) or its ARN",
    r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]|arn:[^\s/]+",
    optional=True,
)
_NAMESPACE = Text(
    "a name of at most 63 letters, digits, dots, underscores and hyphens, not starting with a sign",
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}",
)
_REGION = r"[a-z0-9][a-z0-9-]*"
_URL = Text("a URL such as http://localhost:9000", r"https?://[^\s/@]+(/\S*)?", optional=True)
_ARN = Text("an ARN, such as arn:aws:service:region:account:name", r"arn:\S+", optional=True)
_OPTIONAL_TEXT = Text(optional=True)
_TIMEOUT = Duration(100, 10 * MINUTE_MS, unit_in_name=False)
_LATENCY = Duration(1, 10 * MINUTE_MS)
_STORAGE_CLASSES = ("STANDARD", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR")


@dataclass(frozen=True, kw_only=True)
class S3:
    """Object storage, where all records live."""

    bucket: str = setting("", _BUCKET)
    """The bucket that holds all records, by name or ARN. Empty, the default, is the embedded mode:
    objects are files in the data directory of this machine."""

    region: str = setting("us-east-1", Text("a region such as us-east-1", _REGION))
    """The region of the bucket. `us-east-1` is also what most S3-compatible servers expect."""

    endpoint: str = setting("", _URL)
    """The address of an S3-compatible server such as MinIO. Empty, the default, is AWS itself."""

    path_style: bool = setting(False, Flag())
    """Whether the bucket is named in the path of a URL rather than in its host. False suits AWS;
    MinIO and most local servers need true."""

    kms_key_arn: str = setting("", _ARN, variables=("KAFSCALE_S3_KMS_ARN",))
    """The KMS key that encrypts objects. Empty, the default, leaves encryption to the bucket, which
    at S3 means keys that S3 keeps itself; the broker warns of it when it starts."""

    storage_class: str = setting(
        "STANDARD", Text(f"one of {', '.join(_STORAGE_CLASSES)}", "|".join(_STORAGE_CLASSES))
    )
    """The storage class of segments. STANDARD is the cheapest for records that are read, or that
    are kept for less than a month; indexes and the WAL always have it, being small or soon gone."""

    create_bucket: bool = setting(False, Flag())
    """Whether a starting broker makes the bucket if there is none. False, because a wrong name
    would make a bucket, too, and hide the records that are in the right one."""

    manage_lifecycle: bool = setting(False, Flag())
    """Whether the bucket gets lifecycle rules that remove what topics no longer keep, a week after
    a broker would have. False, because rules belong to whoever owns the bucket; those of others are
    never touched."""

    role_arn: str = setting("", _ARN)
    """A role to assume, with the credentials of any source, for every access to the bucket. Empty,
    the default, uses the credentials as they are."""

    sts_endpoint: str = setting("", _URL)
    """The address of the service that hands out roles. Empty, the default, is that of AWS in the
    bucket's region."""

    credential_source: str = setting("env", Choice(("env", "file", "iam", "workload-identity")))
    """Where credentials come from: `env` is the keys below or the usual AWS variables, `file` a
    profile in the usual AWS files, `iam` the role of the machine or task, `workload-identity` that
    of the pod's service account. `env` works everywhere; no other source is tried than this."""

    credentials_file: str = setting("", _OPTIONAL_TEXT)
    """The file with credentials, where they come from one; it is read again every minute. Empty,
    the default, is where AWS's tools look: `~/.aws/credentials`."""

    profile: str = setting("", _OPTIONAL_TEXT)
    """The profile in that file. Empty, the default, is the one that AWS's tools use: what
    AWS_PROFILE says, or else `default`."""

    access_key: str = setting("", _OPTIONAL_TEXT, secret=True)
    """The access key, given together with the secret key. Empty, the default, leaves both to the
    credential source."""

    secret_key: str = setting("", _OPTIONAL_TEXT, secret=True)
    """The secret key that belongs to the access key. No default, because no secret is one."""

    session_token: str = setting("", _OPTIONAL_TEXT, secret=True)
    """The token of temporary keys. Empty, the default, because permanent keys have none."""

    namespace: str = setting("default", _NAMESPACE)
    """The first part of every object's key. `default` is enough for one cluster; clusters that
    share a bucket need one each."""

    part_bytes: int = setting(5 * MIB, Size(5 * MIB, 5 * GIB), key="partSize")
    """The size from which an object that takes another's place is uploaded in parts, and of each
    part, in bytes. 5 MiB is the least that S3 allows. New objects, as almost all are, are one
    request each, however large: only that is sure to take nobody's place."""

    concurrency: int = setting(5, Number(1, 1024))
    """How many parts of one such object are uploaded at once. 5 fills a fast network without
    crowding out other uploads."""

    requests_max: int = setting(64, Number(2, 10_000), key="maxRequests")
    """How many requests the broker has under way at once; others wait for their turn. 64 keep a
    bucket busy that is 50 ms away. Some are left free for the WAL, which producers wait for."""

    connect_timeout_ms: int = setting(5 * SECOND_MS, _TIMEOUT, key="connectTimeout")
    """How long connecting to the bucket may take. 5s outlasts a lost packet or two."""

    request_timeout_ms: int = setting(10 * SECOND_MS, _TIMEOUT, key="requestTimeout")
    """How long a request may take, not counting one second for every MiB that it moves. After 10s
    without an answer another try is more likely to get one."""

    retries_max: int = setting(3, Number(0, 100), key="maxRetries")
    """How often a failed request is tried again before it is reported as failed. 3 gets over a
    passing fault and still lets a real outage be seen."""

    read_bucket: str = setting("", _BUCKET)
    """A copy of the bucket to read from, for example in a nearer region. Empty, the default, reads
    where it writes."""

    read_region: str = setting("", Text("a region such as us-east-1", _REGION, optional=True))
    """The region of the bucket to read from. Empty, the default, is `s3.region`."""

    read_endpoint: str = setting("", _URL)
    """The address of the server to read from. Empty, the default, is `s3.endpoint`."""

    use_memory: bool = setting(False, Flag(), variables=("KAFSCALE_USE_MEMORY_S3",))
    """Whether objects are kept in the memory of this process and lost with it. False; true is for
    tests, and has to be said because nothing ever falls back to memory by itself."""

    health_window_sec: int = setting(60, Duration(1, 3600, unit="s"))
    """The time over which latency and errors of the store are averaged to judge its health. In
    seconds; 60 is long enough to overlook one slow request."""

    latency_warn_ms: int = setting(500, _LATENCY)
    """The average latency from which the store counts as degraded. In milliseconds; 500 is several
    times what S3 needs on a good day."""

    latency_crit_ms: int = setting(3000, _LATENCY)
    """The average latency from which the store counts as unavailable. In milliseconds; at 3000
    producers are better refused than kept waiting."""

    error_rate_warn: float = setting(0.2, Decimal())
    """The share of failed requests from which the store counts as degraded. A fraction; 0.2 is one
    in five, which retries still hide."""

    error_rate_crit: float = setting(0.6, Decimal())
    """The share of failed requests from which the store counts as unavailable. A fraction; at 0.6
    most retries fail as well."""


@dataclass(frozen=True, kw_only=True)
class Tls:
    """Encryption of the connection to etcd."""

    enabled: bool = setting(False, Flag())
    """Whether connections to etcd use TLS. False, because a first cluster has no certificates yet;
    a production cluster should say true."""

    cert_file: str = setting("", _OPTIONAL_TEXT)
    """The file of the client certificate to show to etcd, as PEM. Empty, the default, shows
    none."""

    key_file: str = setting("", _OPTIONAL_TEXT)
    """The file of the private key that belongs to the certificate, as PEM. Empty, the default, goes
    with no certificate."""

    ca_file: str = setting("", _OPTIONAL_TEXT)
    """The file of the authorities that etcd's certificate is checked against, as PEM. Empty, the
    default, trusts those of the operating system."""


@dataclass(frozen=True, kw_only=True)
class Etcd:
    """etcd, where the cluster keeps what it knows."""

    endpoints: tuple[str, ...] = setting((), Names(ENDPOINT))
    """The members of the etcd cluster. Empty, the default, is the embedded mode: metadata is kept
    in an SQLite file in the data directory, for one broker alone."""

    dial_timeout_ms: int = setting(5 * SECOND_MS, _TIMEOUT, key="dialTimeout")
    """How long connecting to one member may take before the next is tried. 5s is ample inside a
    region."""

    request_timeout_ms: int = setting(10 * SECOND_MS, _TIMEOUT, key="requestTimeout")
    """How long one request to etcd may take. 10s outlasts the election of a new leader in etcd."""

    username: str = setting("", _OPTIONAL_TEXT)
    """The user to sign in to etcd as. Empty, the default, signs in as nobody, as a new etcd
    expects."""

    password: str = setting("", _OPTIONAL_TEXT, secret=True)
    """The password of that user. No default, because no secret is one."""

    tls: Tls = field(default_factory=Tls)


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

    flush_messages: int = setting(10_000, Number(1, 100_000_000))
    """How many records may wait in memory before they are written out. 10,000 bounds what is in
    flight when records are tiny."""

    wal_puts_per_second: float = setting(2.0, Decimal(0.01, 10_000.0))
    """How many WAL objects a second are written while producers could still wait: the bound of the
    bill for requests, whatever the number of partitions. 2 cost about 26 dollars a month on S3;
    more answer producers sooner. Objects that are full or late are written regardless. On local
    disk there is no such bound."""

    wal_puts_burst: int = setting(4, Number(1, 10_000))
    """How many WAL objects may be written at once after a quiet time. 4 answers an occasional
    producer without delay."""

    wal_quiet_bytes: int = setting(MIB, Size(KIB, GIB))
    """From this size on a WAL object is written beyond the budget once nothing more comes: then all
    producers wait for it. 1 MiB costs at most half a cent for a GB on S3; with 256 KiB a single
    producer of small batches gets on several times as fast, for up to 2 cents."""

    wal_uploads_max: int = setting(8, Number(1, 1024), key="maxWalUploads")
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

    local_fsync: bool = setting(False, Flag(), variables=("KAFSCALE_LOCAL_FSYNC",))
    """Whether an object on local disk is forced to the disk before it counts as durable. Acks
    survive a crash of the broker in any case; with true also a loss of power. False, the default,
    promises what a single Kafka broker promises, and was 1.4 times as fast with small batches; a
    bucket needs neither."""

    produce_sync_flush: bool = setting(False, Flag(), variables=("KAFSCALE_PRODUCE_SYNC_FLUSH",))
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
        3, Number(0, 1000), variables=("KAFSCALE_READAHEAD_SEGMENTS",)
    )
    """How many of the following segments are fetched while a reader moves forward. 3 hides the
    latency of the store; 0 fetches only what is asked for."""


@dataclass(frozen=True, kw_only=True)
class Compression:
    """How segments are compressed."""

    type: str = setting("snappy", Choice(("none", "gzip", "snappy", "lz4", "zstd")))
    """How batches that arrive uncompressed are compressed when a segment is made; others stay as
    they came. `snappy` saves much of the space for little of the processor."""
