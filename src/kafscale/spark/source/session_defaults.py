"""The S3 settings of a Spark session, as defaults of the location options of queries.

Sessions that read S3 already have Hadoop's S3A settings: `spark.hadoop.fs.s3a.access.key` and so
on, for all buckets or for one, or environment variables of the driver, which Spark converts to
them. `spark.kafscale.*` settings apply to this source only. Precedence: option of the query,
`spark.kafscale.*`, S3A settings of the bucket, S3A settings for all buckets.

Invariant: credentials reach planners and tasks only as pickled bytes. They are part of no `repr`,
plan, option or error message.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Final

from kafscale.errors import InvalidRequestError
from kafscale.spark.read.location import Location

OUR_PREFIX: Final = "spark.kafscale."
S3A_PREFIX: Final = "fs.s3a."
_BUCKET_PREFIX: Final = "bucket."

_KEYS: Final = {
    "s3.accessKey": "access.key",
    "s3.secretKey": "secret.key",
    "s3.sessionToken": "session.token",
}
_SETTINGS: Final = {
    "s3.endpoint": "endpoint",
    "s3.region": "endpoint.region",
    "s3.pathStyle": "path.style.access",
    "s3.roleArn": "assumed.role.arn",
    "s3.stsEndpoint": "assumed.role.sts.endpoint",
}
"""The S3A names of our options."""

_CREDENTIAL_SOURCES: Final = frozenset({"s3.credentialSource", "s3.profile", "s3.credentialsFile"})
"""Options that select a source of credentials; the credentials of S3A are then ignored."""

_TLS_ENABLED: Final = "connection.ssl.enabled"


@dataclass(frozen=True)
class SessionDefaults:
    """Defaults of the location options of queries."""

    own: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By the names of our options, and three more for credentials."""
    s3a: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By Hadoop's names, without `fs.s3a.`."""

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> "SessionDefaults":
        """Pick the defaults from the settings of a session."""
        own: dict[str, str] = {}
        s3a: dict[str, str] = {}
        for name, value in settings.items():
            short = name.removeprefix("spark.hadoop.")
            if short.startswith(S3A_PREFIX):
                s3a[short.removeprefix(S3A_PREFIX)] = value
            elif name.startswith(OUR_PREFIX):
                own[name.removeprefix(OUR_PREFIX)] = value
        _check(own)
        return cls(own, s3a)

    def resolve_location(self, options: Mapping[str, str]) -> Location:
        """Resolve the location options of a query with these defaults."""
        merged = {name: value for name, value in self.own.items() if name in Location.OPTIONS}
        if "path" in options:
            merged.pop("namespace", None)  # It belongs to the default path, which is not used.
        merged |= options
        path = merged.pop("path", "")
        location = Location.parse(path, merged)
        if location.bucket is None:
            return location
        s3a = self._s3a_settings(location.bucket.short_name)
        for ours, theirs in _SETTINGS.items():
            if s3a.get(theirs):
                merged.setdefault(ours, s3a[theirs])
        location = Location.parse(path, merged)
        assert location.bucket is not None
        if _CREDENTIAL_SOURCES & merged.keys():
            return location
        access_key, secret_key, session_token = (
            self.own.get(ours) or s3a.get(theirs) or "" for ours, theirs in _KEYS.items()
        )
        bucket = replace(
            location.bucket,
            access_key=access_key,
            secret_key=secret_key,
            session_token=session_token,
        )
        return replace(location, bucket=bucket)

    def _s3a_settings(self, bucket: str) -> dict[str, str]:
        prefix = f"{_BUCKET_PREFIX}{bucket}."
        settings = dict(self.s3a)
        settings |= {
            name.removeprefix(prefix): value
            for name, value in self.s3a.items()
            if name.startswith(prefix)
        }
        endpoint = settings.get("endpoint", "")
        if endpoint and "://" not in endpoint:
            is_plain = settings.get(_TLS_ENABLED, "true").lower() == "false"
            settings["endpoint"] = f"{'http' if is_plain else 'https'}://{endpoint}"
        return settings


def _check(own: Mapping[str, str]) -> None:
    known = Location.OPTIONS | _KEYS.keys()
    for name in own:
        if name.startswith("s3.") and name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {OUR_PREFIX}{near[0]}?" if near else ""
            raise InvalidRequestError(f"unknown setting {OUR_PREFIX}{name}{hint}")
