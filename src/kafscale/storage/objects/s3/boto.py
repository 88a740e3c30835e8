"""What obstore leaves out of S3, asked of AWS's own library: keys, roles, buckets and their rules.

The laws:

* Everything here blocks, and the library takes half a second to load. So this module is imported
  and called in threads, by `credentials` and `s3_control`, and never by a broker that needs none.
* A credential source is that source and no other. The library would try one after the other, and a
  broker that was to use a profile could end up with the rights of its machine.
* Errors are ours, and say what to do; no key is ever part of one, nor of a line in the log.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import botocore.session  # type: ignore[import-untyped]
from botocore import credentials
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import (  # type: ignore[import-untyped]
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    MetadataRetrievalError,
)
from botocore.exceptions import ConnectionError as NotConnectedError

from kafscale.errors import ConfigError, OperatingError, StoreUnavailableError
from kafscale.storage.objects.s3.bucket_config import S3Bucket

# At level debug the library writes whole requests to the log, tokens included.
logging.getLogger("botocore").setLevel(logging.WARNING)

_SESSION_NAME: Final = "kafscale"
_ATTEMPTS_MAX: Final = 3
_PASSING_CODES: Final = {"Throttling", "ThrottlingException", "RequestTimeout", "OperationAborted"}

_PASSING_ERRORS: Final = (
    HTTPClientError,
    NotConnectedError,
    CredentialRetrievalError,
    MetadataRetrievalError,
)

_PROVIDERS: Final = {
    "env": ("env",),
    "file": (
        "assume-role",
        "sso",
        "shared-credentials-file",
        "login",
        "custom-process",
        "config-file",
    ),
    "iam": ("container-role", "iam-role"),
    "workload-identity": ("assume-role-with-web-identity", "container-role"),
}
"""What the library calls the ways that each source stands for, in the order they are tried."""

_MISSING: Final = {
    "env": "neither s3.accessKey nor AWS_ACCESS_KEY_ID is set; set the keys, or set "
    "s3.credentialSource to file, iam or workload-identity",
    "file": "the profile has no keys; check s3.credentialsFile and s3.profile",
    "iam": "this machine has no role that it tells of; attach one to it, or set "
    "s3.credentialSource to another source",
    "workload-identity": "neither AWS_WEB_IDENTITY_TOKEN_FILE nor "
    "AWS_CONTAINER_CREDENTIALS_FULL_URI is set, as Kubernetes does for a service account with a "
    "role; give the service account one, or set s3.credentialSource to another source",
}


class Keys(NamedTuple):
    """What requests are signed with."""

    access_key: str
    secret_key: str
    token: str | None

    def __repr__(self) -> str:
        return "Keys(...)"


class Aws:
    """An account at AWS, or at a server like it, as the credentials of one bucket open it."""

    def __init__(self, bucket: S3Bucket, clock: Callable[[], float] = time.time) -> None:
        """`clock` tells seconds since 1970."""
        self._bucket = bucket
        self._clock = clock
        self._session = botocore.session.Session(profile=bucket.profile or None)
        self._session.set_config_variable("region", bucket.region)
        if bucket.credentials_file:
            self._session.set_config_variable("credentials_file", bucket.credentials_file)
        self._role_arn = bucket.role_arn
        self._source: Any = None
        self._assumed: Keys | None = None
        self._assume_at = 0.0

    # --- keys ---------------------------------------------------------------------------------

    def keys(self) -> Keys:
        """Keys that are valid for a while to come; quick, unless they have to be fetched anew."""
        with _told_as("credentials"):
            if self._role_arn and self._clock() < self._assume_at and self._assumed:
                return self._assumed
            own = self._own_keys()
            return self._assume(own) if self._role_arn else own

    def _own_keys(self) -> Keys:
        """The keys that the source has, without a role."""
        bucket = self._bucket
        if bucket.access_key:
            return Keys(bucket.access_key, bucket.secret_key, bucket.session_token or None)
        if self._source is None:
            self._source = self._find()
        frozen = self._source.get_frozen_credentials()
        keys = Keys(frozen.access_key, frozen.secret_key, frozen.token)
        if bucket.credential_source == "file":
            self._source = None  # Somebody may write new ones into it.
        return keys

    def _find(self) -> Any:
        """The library's object for what the source has; it fetches new keys by itself."""
        resolver = credentials.create_credential_resolver(
            self._session, region_name=self._bucket.region
        )
        by_name = {provider.METHOD: provider for provider in resolver.providers}
        by_name["assume-role-with-web-identity"] = self._web_identity()
        for name in _PROVIDERS[self._bucket.credential_source]:
            found = by_name[name].load() if name in by_name else None
            if found is not None:
                return found
        source = self._bucket.credential_source
        raise ConfigError(f"no credentials for S3: {_MISSING[source]}")

    def _web_identity(self) -> Any:
        """As the library's own, but it asks our STS, and our role will do where it is told none."""
        profile = {"role_arn": self._bucket.role_arn} if self._bucket.role_arn else {}
        return credentials.AssumeRoleWithWebIdentityProvider(
            load_config=lambda: {"profiles": {_SESSION_NAME: profile}},
            client_creator=lambda service, config: self._client(service, None, config),
            profile_name=_SESSION_NAME,
        )

    def _assume(self, own: Keys) -> Keys:
        """Take on the role, and do so again when half of its time is over."""
        sts = self._client("sts", own)
        if self._bucket.credential_source == "workload-identity" and is_role(
            sts.get_caller_identity()["Arn"], self._role_arn
        ):
            self._role_arn = ""  # It is the role that we have anyway.
            return own
        answer = sts.assume_role(RoleArn=self._role_arn, RoleSessionName=_SESSION_NAME)
        session = answer["Credentials"]
        self._assumed = Keys(
            session["AccessKeyId"], session["SecretAccessKey"], session["SessionToken"]
        )
        self._assume_at = (self._clock() + session["Expiration"].timestamp()) / 2
        return self._assumed

    # --- buckets ------------------------------------------------------------------------------

    def create_bucket(self) -> bool:
        """Make the bucket, unless it is ours already; whether it is new."""
        place = {"CreateBucketConfiguration": {"LocationConstraint": self._bucket.region}}
        with _told_as("create bucket"):
            s3 = self._client("s3", self.keys())
            try:
                s3.create_bucket(
                    Bucket=self._bucket.short_name,
                    # The first region has no name here.
                    **({} if self._bucket.region == "us-east-1" else place),
                )
            except ClientError as error:
                if error.response["Error"]["Code"] != "BucketAlreadyOwnedByYou":
                    raise
                return False
            return True

    def region(self) -> str:
        """The region that the bucket is in; empty where the server knows of none."""
        with _told_as("find bucket"):
            answer = self._client("s3", self.keys()).head_bucket(Bucket=self._bucket.short_name)
        return str(answer.get("BucketRegion") or "")

    def replicate(self, rule: Mapping[str, Any], role_arn: str) -> bool:
        """Have a rule of replication, which needs versions, beside those of others; whether new."""
        name = self._bucket.short_name
        with _told_as("replicate"):
            s3 = self._client("s3", self.keys())
            try:
                found = s3.get_bucket_replication(Bucket=name)["ReplicationConfiguration"]
            except ClientError as error:
                if error.response["Error"]["Code"] != "ReplicationConfigurationNotFoundError":
                    raise
                found = {"Role": "", "Rules": []}
            others = [each for each in found["Rules"] if each.get("ID") != rule["ID"]]
            if found["Role"] == role_arn and rule in found["Rules"]:
                return False
            s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
            s3.put_bucket_replication(
                Bucket=name,
                ReplicationConfiguration={"Role": role_arn, "Rules": [*others, dict(rule)]},
            )
            return True

    def read_lifecycle(self) -> dict[str, Any]:
        """The lifecycle rules of the bucket and what belongs to them, ready to be written back."""
        with _told_as("read lifecycle rules"):
            try:
                answer = self._client("s3", self.keys()).get_bucket_lifecycle_configuration(
                    Bucket=self._bucket.short_name
                )
            except ClientError as error:
                if error.response["Error"]["Code"] != "NoSuchLifecycleConfiguration":
                    raise
                return {"Rules": []}
        return {name: value for name, value in answer.items() if name != "ResponseMetadata"}

    def write_lifecycle(self, found: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]) -> None:
        """Give the bucket new rules in place of those `found`."""
        others = {name: value for name, value in found.items() if name != "Rules"}
        with _told_as("write lifecycle rules"):
            s3 = self._client("s3", self.keys())
            if rules:
                s3.put_bucket_lifecycle_configuration(
                    Bucket=self._bucket.short_name,
                    LifecycleConfiguration={"Rules": [*rules]},
                    **others,
                )
            else:
                s3.delete_bucket_lifecycle(Bucket=self._bucket.short_name)

    # --- clients ------------------------------------------------------------------------------

    def _client(self, service: str, keys: Keys | None, config: Config | None = None) -> Any:
        bucket = self._bucket
        endpoint = bucket.sts_endpoint if service == "sts" else bucket.endpoint
        ours = Config(
            connect_timeout=bucket.connect_timeout_ms / 1000,
            read_timeout=bucket.request_timeout_ms / 1000,
            retries={"total_max_attempts": _ATTEMPTS_MAX, "mode": "standard"},
            s3={"addressing_style": "path" if bucket.path_style else "virtual"},
        )
        signed = (
            {}
            if keys is None
            else {
                "aws_access_key_id": keys.access_key,
                "aws_secret_access_key": keys.secret_key,
                "aws_session_token": keys.token,
            }
        )
        return self._session.create_client(
            service,
            region_name=bucket.region,
            endpoint_url=endpoint or None,
            config=ours.merge(config) if config else ours,
            **signed,
        )


def is_role(identity_arn: str, role_arn: str) -> bool:
    """Whether a session, as STS names it, is one of a role, as IAM names it.

    >>> session = "arn:aws:sts::123456789012:assumed-role/kafscale/some-pod"
    >>> is_role(session, "arn:aws:iam::123456789012:role/teams/data/kafscale")
    True
    >>> is_role(session, "arn:aws:iam::999999999999:role/kafscale")
    False
    """
    *_, account, session = identity_arn.split(":")
    *_, role_account, role = role_arn.split(":")
    kind, _, name = session.partition("/")
    return (kind, account, name.partition("/")[0]) == (
        "assumed-role",
        role_account,
        role.rpartition("/")[2],
    )


@contextmanager
def _told_as(what: str) -> Iterator[None]:
    """Turn the library's errors into ours."""
    try:
        yield
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        passing = status >= 500 or status == 429 or code in _PASSING_CODES
        kind = StoreUnavailableError if passing else OperatingError
        raise kind(f"{what}: {error.operation_name}: {code}, {message}") from None
    except _PASSING_ERRORS as error:
        raise StoreUnavailableError(f"{what}: {error}") from None
    except BotoCoreError as error:
        raise OperatingError(f"{what}: {error}") from None
