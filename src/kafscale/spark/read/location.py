"""The location of a cluster's records: a bucket and namespace, or a local data directory.

A location is created on the driver and sent to the tasks, each of which opens its own store.
Invariant: its `repr` contains no access key and no token, so that it may appear in plans and logs.
Credentials come from the machine that runs the task, unless they are given explicitly.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Final

from kafscale.errors import InvalidRequestError
from kafscale.storage.formats.object_keys import OBJECTS_DIRECTORY
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.layers.limited import LimitedObjectStore
from kafscale.storage.objects.layers.retrying import RetryingObjectStore
from kafscale.storage.objects.local.store import LocalObjectStore
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.store import S3ObjectStore
from kafscale.storage.objects.store import ObjectStore

DEFAULT_NAMESPACE: Final = "default"
REQUESTS_MAX: Final = 32
"""The maximum number of concurrent requests of one task."""

ATTEMPTS_MAX: Final = 9

_S3_URL: Final = re.compile(r"s3[an]?://([^/]+)/?(.*)")
_SETTINGS: Final = {
    "s3.endpoint": "endpoint",
    "s3.region": "region",
    "s3.pathStyle": "path_style",
    "s3.credentialSource": "credential_source",
    "s3.profile": "profile",
    "s3.credentialsFile": "credentials_file",
    "s3.roleArn": "role_arn",
    "s3.stsEndpoint": "sts_endpoint",
}
"""The options for access to a bucket, named like the settings of a broker."""

_BOOLEANS: Final = {"true": True, "false": False}


@dataclass(frozen=True, kw_only=True)
class Location:
    """A bucket, or a directory, and the namespace in it."""

    OPTIONS: ClassVar[frozenset[str]] = frozenset({"path", "namespace", *_SETTINGS})

    namespace: str
    bucket: S3Bucket | None = None
    directory: str = ""
    """The directory of the objects; absolute, because tasks have other working directories."""

    @classmethod
    def parse(cls, path: str, options: Mapping[str, str] | None = None) -> "Location":
        """Parse a path and options.

        >>> print(Location.parse("s3://records/production"))
        s3://records/production
        """
        options = options or {}
        namespace = options.get("namespace", "")
        if not path:
            raise InvalidRequestError(
                "path is missing: give s3://bucket/namespace or a data directory"
            )
        match = _S3_URL.fullmatch(path)
        if match is None:
            return cls._of_directory(path.removeprefix("file://"), namespace)
        in_path = match[2].strip("/")
        if namespace and in_path and namespace != in_path:
            raise InvalidRequestError(
                f"path names the namespace {in_path!r}, but the option namespace is {namespace!r}"
            )
        bucket = S3Bucket(name=match[1], **_settings(options))
        return cls(namespace=in_path or namespace or DEFAULT_NAMESPACE, bucket=bucket)

    @classmethod
    def _of_directory(cls, path: str, namespace: str) -> "Location":
        if "://" in path:
            raise InvalidRequestError(
                f"path {path!r} is neither s3://bucket/namespace nor a data directory"
            )
        root = Path(path).absolute()
        objects = root if root.name == OBJECTS_DIRECTORY else root / OBJECTS_DIRECTORY
        if not objects.is_dir():
            raise InvalidRequestError(
                f"{path} is not a data directory of Kafscale: it has no {OBJECTS_DIRECTORY!r} in it"
            )
        return cls(namespace=namespace or DEFAULT_NAMESPACE, directory=str(objects))

    def __str__(self) -> str:
        if self.bucket is not None:
            return f"s3://{self.bucket.short_name}/{self.namespace}"
        return f"{self.directory}/{self.namespace}"

    def open(self) -> BlockingObjectStore:
        return BlockingObjectStore(self._store)

    def _store(self) -> ObjectStore:
        if self.bucket is None:
            return LocalObjectStore(Path(self.directory), shared=True)
        limited = LimitedObjectStore(S3ObjectStore(self.bucket), requests_max=REQUESTS_MAX)
        return RetryingObjectStore(limited, attempts_max=ATTEMPTS_MAX, random=Random())  # noqa: S311


def _settings(options: Mapping[str, str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, attribute in _SETTINGS.items():
        value = options.get(name)
        if value is None:
            continue
        if attribute != "path_style":
            settings[attribute] = value
        elif value.lower() in _BOOLEANS:
            settings[attribute] = _BOOLEANS[value.lower()]
        else:
            raise InvalidRequestError(f"{name} must be true or false, not {value!r}")
    return settings
