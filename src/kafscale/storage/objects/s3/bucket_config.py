"""A bucket: where it is, how to reach it, with whose keys, and how to treat what is put there.

The law: no key and no token is ever part of a `repr`. Everything is given; the environment is
looked at only where a credential source says that it is to be.
"""

from dataclasses import dataclass, field
from typing import Final

STANDARD: Final = "STANDARD"
"""The storage class that every object has unless it is said otherwise."""


@dataclass(frozen=True, kw_only=True)
class S3Bucket:
    """A bucket, how to reach it, and how to treat what is put there."""

    name: str
    """Its name, or its ARN, `arn:aws:s3:::name`."""
    region: str = "us-east-1"
    endpoint: str = ""
    path_style: bool = False

    credential_source: str = "env"
    """Where keys come from, unless they are given: env, file, iam or workload-identity."""
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    credentials_file: str = ""
    profile: str = ""
    role_arn: str = ""
    """A role to assume with those keys."""
    sts_endpoint: str = ""

    kms_key_arn: str = ""
    storage_class: str = STANDARD
    """The class of the objects that a store takes for archived; all others are standard."""
    signed_payload: bool = False
    """Whether a hash of the body is signed as well. TLS already guards what is in transit, and
    every object of ours carries its checksum; hashing would double the cost of an upload."""

    part_bytes: int = 5 * 1024 * 1024
    concurrency: int = 5
    connect_timeout_ms: int = 5_000
    request_timeout_ms: int = 10_000

    @property
    def short_name(self) -> str:
        """Its name, if it was given as an ARN, too.

        >>> S3Bucket(name="arn:aws:s3:::records").short_name
        'records'
        """
        return self.name.rpartition(":")[2]
