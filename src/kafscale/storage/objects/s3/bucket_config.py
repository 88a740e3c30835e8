"""`S3Bucket`: the location, credentials and options of a bucket.

Invariant: `repr` never contains keys or tokens. The environment is used only by the credential
sources that are defined by it.
"""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from kafscale.net.address import is_ip

STANDARD: Final = "STANDARD"
"""The default storage class."""
BUCKET_DEFAULT: Final = "bucket"
"""Leaves encryption to the bucket's settings."""


@dataclass(frozen=True, kw_only=True)
class S3Bucket:
    """A bucket: location, credentials, and options for its objects."""

    name: str
    """Name or ARN, `arn:aws:s3:::name`."""
    region: str = "us-east-1"
    endpoint: str = ""
    path_style: bool | None = None
    """Whether URLs have the bucket in the path. None: only those of an endpoint that is set."""

    credential_source: str = "env"
    """Where keys come from, if they are not given: env, file, iam or workload-identity."""
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    credentials_file: str = ""
    profile: str = ""
    role_arn: str = ""
    """A role to assume with these keys."""
    sts_endpoint: str = ""

    kms_key_arn: str = ""
    server_side_encryption: str = BUCKET_DEFAULT
    """Without a KMS key: `bucket`, or the algorithm that uploads request."""
    storage_class: str = STANDARD
    """The storage class of archived objects; all others use the default."""
    signed_payload: bool = False
    """Whether to sign a hash of the body as well. TLS already protects data in transit, and every
    object has its own checksum; hashing would double the cost of an upload."""

    part_bytes: int = 5 * 1024 * 1024
    concurrency: int = 5
    idle_connections_max: int = 100
    idle_timeout_ms: int = 90_000
    connect_timeout_ms: int = 5_000
    request_timeout_ms: int = 10_000

    @property
    def uses_path_style(self) -> bool:
        """Whether the bucket is in the path of URLs.

        >>> S3Bucket(name="records").uses_path_style
        False
        >>> S3Bucket(name="records", endpoint="https://minio:9000").uses_path_style
        True
        >>> S3Bucket(name="records", endpoint="http://[::1]:9000", path_style=False).uses_path_style
        True
        """
        if self.endpoint and is_ip(urlsplit(self.endpoint).hostname or ""):
            return True  # An IP address cannot contain a name.
        return bool(self.endpoint) if self.path_style is None else self.path_style

    @property
    def short_name(self) -> str:
        """The name without the ARN prefix.

        >>> S3Bucket(name="arn:aws:s3:::records").short_name
        'records'
        """
        return self.name.rpartition(":")[2]
