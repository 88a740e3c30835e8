"""Settings of object storage.

Without a bucket, objects are files in the data directory. A store that is configured is never
silently replaced by another.
"""

from dataclasses import dataclass

from kafscale.config.schema import setting
from kafscale.config.types import (
    Boolean,
    Choice,
    Duration,
    Float,
    Integer,
    OptionalBoolean,
    Server,
    Size,
    Text,
)
from kafscale.text.units import GIB, MIB, MINUTE_MS, SECOND_MS

_BUCKET = Text(
    "a bucket's name (3 to 63 lowercase letters, digits, dots and hyphens) or its ARN",
    r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]|arn:[^\s/]+",
    optional=True,
)
_NAMESPACE = Text(
    "a name of at most 63 letters, digits, dots, underscores and hyphens, first a letter or digit",
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}",
)
_REGION = r"[a-z0-9][a-z0-9-]*"
_URL = Server("a URL such as http://localhost:9000", r"https?://[^\s/@]+(/\S*)?", optional=True)
_ARN = Text("an ARN, such as arn:aws:service:region:account:name", r"arn:\S+", optional=True)
_OPTIONAL_TEXT = Text(optional=True)
_TIMEOUT = Duration(100, 10 * MINUTE_MS, unit_in_name=False)
_LATENCY = Duration(1, 10 * MINUTE_MS)
_STORAGE_CLASSES = ("STANDARD", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR")


@dataclass(frozen=True, kw_only=True)
class S3:
    """Object storage, which contains all records."""

    bucket: str = setting("", _BUCKET)
    """The bucket, by name or ARN. Empty, the default, is the embedded mode: objects are files in
    the data directory."""

    region: str = setting("us-east-1", Text("a region such as us-east-1", _REGION))
    """The region of the bucket. `us-east-1` is what most S3-compatible servers expect, too."""

    endpoint: str = setting("", _URL)
    """The URL of an S3-compatible server such as MinIO. Empty, the default, means AWS."""

    path_style: bool | None = setting(None, OptionalBoolean())
    """Whether the bucket is part of the URL's path instead of its host name. Empty, the default, is
    true if `s3.endpoint` is set, as MinIO and most servers need it, and false for AWS. An IP
    address cannot contain the bucket's name."""

    kms_key_arn: str = setting("", _ARN, variables=("KAFSCALE_S3_KMS_ARN",))
    """The KMS key for server-side encryption. Empty, the default, leaves encryption to the bucket's
    settings, which usually means keys that S3 manages; the broker logs a warning at start."""

    server_side_encryption: str = setting("bucket", Choice(("bucket", "AES256")))
    """Whether uploads request encryption with keys of the store (SSE-S3) if there is no KMS key.
    `bucket`, the default, leaves it to the bucket's settings, which on AWS are at least SSE-S3, and
    may be a KMS key that AES256 would override; MinIO rejects AES256 unless it has a KMS."""

    storage_class: str = setting(
        "STANDARD", Text(f"one of {', '.join(_STORAGE_CLASSES)}", "|".join(_STORAGE_CLASSES))
    )
    """The storage class of segments. STANDARD is the cheapest for records that are read, or kept
    for less than a month. Indexes and the WAL always use STANDARD, because they are small or
    short-lived."""

    create_bucket: bool = setting(False, Boolean())
    """Whether a starting broker creates a missing bucket. False, because with a mistyped name it
    would create an empty bucket."""

    manage_lifecycle: bool = setting(False, Boolean())
    """Whether brokers add lifecycle rules to the bucket that delete expired objects a week after
    brokers would have. False, because rules belong to the owner of the bucket. Rules of others are
    never changed."""

    role_arn: str = setting("", _ARN)
    """An IAM role to assume for all requests, with the credentials of the source below. Empty, the
    default, uses the credentials directly."""

    sts_endpoint: str = setting("", _URL)
    """The URL of the STS service. Empty, the default, is that of AWS in the bucket's region."""

    credential_source: str = setting("env", Choice(("env", "file", "iam", "workload-identity")))
    """The source of credentials: `env` is the keys below or the usual AWS variables, `file` a
    profile in the usual AWS files, `iam` the role of the machine or task, `workload-identity` the
    role of the pod's service account. `env` works everywhere; no other source is tried."""

    credentials_file: str = setting("", _OPTIONAL_TEXT)
    """The credentials file, if the source is `file`; it is read again every minute. Empty, the
    default, is `~/.aws/credentials`."""

    profile: str = setting("", _OPTIONAL_TEXT)
    """The profile in that file. Empty, the default, is the value of AWS_PROFILE, or else
    `default`."""

    access_key: str = setting("", _OPTIONAL_TEXT, secret=True)
    """The access key; it requires the secret key. Empty, the default, uses the credential
    source."""

    secret_key: str = setting("", _OPTIONAL_TEXT, secret=True)
    """The secret key of the access key. Empty by default."""

    session_token: str = setting("", _OPTIONAL_TEXT, secret=True)
    """The session token of temporary keys. Empty by default."""

    namespace: str = setting("default", _NAMESPACE)
    """The first part of every object key. `default` is enough for one cluster; clusters that share
    a bucket need different namespaces."""

    part_bytes: int = setting(5 * MIB, Size(5 * MIB, 5 * GIB), key="partSize")
    """The part size of multipart uploads, in bytes, and the object size from which they are used;
    only replaced objects are uploaded in parts. 5 MiB is the minimum of S3. New objects, which are
    almost all, are created by a single conditional PUT of any size, which cannot overwrite another
    object."""

    concurrency: int = setting(5, Integer(1, 1024))
    """How many parts of one object are uploaded concurrently. 5 use a fast network without
    displacing other uploads."""

    requests_max: int = setting(64, Integer(2, 10_000), key="maxRequests")
    """The maximum number of concurrent requests; others wait. 64 are enough for a bucket with a
    latency of 50 ms. Some are reserved for the WAL, because producers wait for it."""

    idle_connections_max: int = setting(100, Integer(0, 10_000), key="maxIdleConnections")
    """How many idle connections to the object store are kept for later requests. 100 are more than
    `s3.maxRequests`, so that no request waits for a TLS handshake."""

    idle_timeout_ms: int = setting(90 * SECOND_MS, _TIMEOUT, key="idleTimeout")
    """How long an idle connection is kept. 90s are less than most servers and load balancers
    allow."""

    connect_timeout_ms: int = setting(5 * SECOND_MS, _TIMEOUT, key="connectTimeout")
    """The timeout of connections to the object store. 5s tolerate a few lost packets."""

    request_timeout_ms: int = setting(10 * SECOND_MS, _TIMEOUT, key="requestTimeout")
    """The timeout of a request, plus one second for every MiB that it transfers. After 10s without
    a response a retry is more likely to succeed."""

    attempts_max: int = setting(3, Integer(1, 100), key="maxRetries")
    """How often a request is sent in all before it counts as failed; 1 disables retries. 3 attempts
    hide a transient error, and a real outage still becomes visible."""

    read_bucket: str = setting("", _BUCKET)
    """A replica of the bucket to read from, for example in a nearer region. Empty, the default,
    reads from the bucket itself."""

    read_region: str = setting("", Text("a region such as us-east-1", _REGION, optional=True))
    """The region of the read bucket. Empty, the default, is `s3.region`."""

    read_endpoint: str = setting("", _URL)
    """The URL of the server of the read bucket. Empty, the default, is `s3.endpoint`."""

    use_memory: bool = setting(False, Boolean(), variables=("KAFSCALE_USE_MEMORY_S3",))
    """Whether objects are kept in the memory of this process and lost at exit. False; true is for
    tests. Kafscale never falls back to memory on its own."""

    health_window_sec: int = setting(60, Duration(1, 3600, unit="s"))
    """The time over which latency and errors of the store are averaged for its health. In seconds.
    60 are long enough to ignore a single slow request."""

    latency_warn_ms: int = setting(500, _LATENCY)
    """The average latency above which the store is degraded. In milliseconds. 500 is several times
    the usual latency of S3."""

    latency_crit_ms: int = setting(3000, _LATENCY)
    """The average latency above which the store is unavailable. In milliseconds. Above 3000 it is
    better to reject produce requests than to let them wait."""

    error_rate_warn: float = setting(0.2, Float())
    """The share of failed requests above which the store is degraded. A fraction. 0.2 is one in
    five, which retries still hide."""

    error_rate_crit: float = setting(0.6, Float())
    """The share of failed requests above which the store is unavailable. A fraction. At 0.6 most
    retries fail, too."""
