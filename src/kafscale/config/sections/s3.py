"""Settings of the object store."""

from dataclasses import dataclass

from kafscale.config.schema import setting
from kafscale.config.types import Boolean, Choice, Duration, Float, Integer, Size, Text
from kafscale.text.units import GIB, MIB, MINUTE_MS, SECOND_MS

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

    path_style: bool = setting(False, Boolean())
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

    create_bucket: bool = setting(False, Boolean())
    """Whether a starting broker makes the bucket if there is none. False, because a wrong name
    would make a bucket, too, and hide the records that are in the right one."""

    manage_lifecycle: bool = setting(False, Boolean())
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

    concurrency: int = setting(5, Integer(1, 1024))
    """How many parts of one such object are uploaded at once. 5 fills a fast network without
    crowding out other uploads."""

    requests_max: int = setting(64, Integer(2, 10_000), key="maxRequests")
    """How many requests the broker has under way at once; others wait for their turn. 64 keep a
    bucket busy that is 50 ms away. Some are left free for the WAL, which producers wait for."""

    connect_timeout_ms: int = setting(5 * SECOND_MS, _TIMEOUT, key="connectTimeout")
    """How long connecting to the bucket may take. 5s outlasts a lost packet or two."""

    request_timeout_ms: int = setting(10 * SECOND_MS, _TIMEOUT, key="requestTimeout")
    """How long a request may take, not counting one second for every MiB that it moves. After 10s
    without an answer another try is more likely to get one."""

    retries_max: int = setting(3, Integer(0, 100), key="maxRetries")
    """How often a failed request is tried again before it is reported as failed. 3 gets over a
    passing fault and still lets a real outage be seen."""

    read_bucket: str = setting("", _BUCKET)
    """A copy of the bucket to read from, for example in a nearer region. Empty, the default, reads
    where it writes."""

    read_region: str = setting("", Text("a region such as us-east-1", _REGION, optional=True))
    """The region of the bucket to read from. Empty, the default, is `s3.region`."""

    read_endpoint: str = setting("", _URL)
    """The address of the server to read from. Empty, the default, is `s3.endpoint`."""

    use_memory: bool = setting(False, Boolean(), variables=("KAFSCALE_USE_MEMORY_S3",))
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

    error_rate_warn: float = setting(0.2, Float())
    """The share of failed requests from which the store counts as degraded. A fraction; 0.2 is one
    in five, which retries still hide."""

    error_rate_crit: float = setting(0.6, Float())
    """The share of failed requests from which the store counts as unavailable. A fraction; at 0.6
    most retries fail as well."""
