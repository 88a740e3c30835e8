"""What a session says about buckets: how to reach them, and with whose keys.

Whoever reads S3 with Spark has said it already, for Hadoop's S3A: `spark.hadoop.fs.s3a.access.key`
and its like, for all buckets or for one, or as variables of the driver's environment, which Spark
turns into the same. `spark.kafscale.*` says it to us alone; the options of a query say it last. The
nearer one wins: option, `spark.kafscale.*`, S3A's for this bucket, S3A's for all.

The law: keys go from the driver to planners and tasks inside of pickled bytes only. They are part
of no `repr`, no plan, no option and no error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Final

from kafscale.errors import InvalidRequestError
from kafscale.spark.source.location import Location

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
"""What S3A calls our options."""

_OWN_SOURCES: Final = frozenset({"s3.credentialSource", "s3.profile", "s3.credentialsFile"})
"""Options that say where keys come from; those of S3A are then not meant."""

_ENCRYPTED: Final = "connection.ssl.enabled"


@dataclass(frozen=True)
class SessionDefaults:
    """What holds for queries that do not say otherwise."""

    own: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By our names for options, and three more for keys."""
    s3a: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By Hadoop's names without `fs.s3a.`."""

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> "SessionDefaults":
        """The defaults among the settings of a session, or of Hadoop."""
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
        """The location that the options of a query mean here."""
        said = {name: value for name, value in self.own.items() if name in Location.OPTIONS}
        if "path" in options:
            said.pop("namespace", None)  # It belongs to the path that is not taken.
        said |= options
        path = said.pop("path", "")
        location = Location.parse(path, said)
        if location.bucket is None:
            return location
        s3a = self._s3a_of(location.bucket.short_name)
        for ours, theirs in _SETTINGS.items():
            if s3a.get(theirs):
                said.setdefault(ours, s3a[theirs])
        location = Location.parse(path, said)
        assert location.bucket is not None
        if _OWN_SOURCES & said.keys():
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

    def _s3a_of(self, bucket: str) -> dict[str, str]:
        """S3A's settings for a bucket."""
        prefix = f"{_BUCKET_PREFIX}{bucket}."
        found = dict(self.s3a)
        found |= {
            name.removeprefix(prefix): value
            for name, value in self.s3a.items()
            if name.startswith(prefix)
        }
        endpoint = found.get("endpoint", "")
        if endpoint and "://" not in endpoint:
            is_plain = found.get(_ENCRYPTED, "true").lower() == "false"
            found["endpoint"] = f"{'http' if is_plain else 'https'}://{endpoint}"
        return found


def _check(own: Mapping[str, str]) -> None:
    known = Location.OPTIONS | _KEYS.keys()
    for name in own:
        if name.startswith("s3.") and name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; is it {OUR_PREFIX}{near[0]}?" if near else ""
            raise InvalidRequestError(f"unknown setting {OUR_PREFIX}{name}{hint}")
