"""S3 operations that obstore lacks, through botocore: credentials, roles, buckets and their rules.

Invariants:

* All calls block, and the library takes half a second to load. So this module is imported and
  called in threads, by `credentials` and `bucket_admin`, and never by a broker that does not need
  it.
* A credential source is used exclusively. The library would try one after another, and a broker
  configured with a profile could get the permissions of its machine.
* Errors are Kafscale's and say what to do; they and the logs never contain keys.
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
    ProfileNotFound,
)
from botocore.exceptions import ConnectionError as NotConnectedError

from kafscale.errors import ConfigError, OperatingError, StoreUnavailableError
from kafscale.storage.objects.s3.bucket_config import S3Bucket

# At level debug the library logs whole requests, including tokens.
logging.getLogger("botocore").setLevel(logging.WARNING)

_SESSION_NAME: Final = "kafscale"
_ATTEMPTS_MAX: Final = 3
_PASSING_CODES: Final = {"Throttling", "ThrottlingException", "RequestTimeout", "OperationAborted"}

_PASSING_ERRORS: Final = (HTTPClientError, CredentialRetrievalError, MetadataRetrievalError)

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
"""The library's names of the providers of each source, in the order they are tried."""

_MISSING: Final = {
    "env": "neither s3.accessKey nor AWS_ACCESS_KEY_ID is set; set the keys, or set "
    "s3.credentialSource to file, iam or workload-identity",
    "file": "the profile has no keys; check s3.credentialsFile and s3.profile",
    "iam": "this machine has no instance role; attach one to it, or set s3.credentialSource to "
    "another source",
    "workload-identity": "neither AWS_WEB_IDENTITY_TOKEN_FILE nor "
    "AWS_CONTAINER_CREDENTIALS_FULL_URI is set, as Kubernetes does for a service account with a "
    "role; give the service account a role, or set s3.credentialSource to another source",
}

_ADVICE: Final = {
    "AssumeRole": "; check s3.roleArn, and that the credentials may assume it",
    "AssumeRoleWithWebIdentity": "; check the role of the service account, and s3.stsEndpoint",
}
"""What to check if an operation of STS is rejected."""


class AccessKeys(NamedTuple):
    """The keys that sign requests."""

    access_key: str
    secret_key: str
    token: str | None

    def __repr__(self) -> str:
        return "AccessKeys(...)"


class BotoClient:
    """Calls AWS, or a compatible server, with the credentials of one bucket."""

    def __init__(self, bucket: S3Bucket, clock: Callable[[], float] = time.time) -> None:
        """`clock` returns seconds since 1970."""
        self._bucket = bucket
        self._clock = clock
        self._session = botocore.session.Session(profile=bucket.profile or None)
        self._session.set_config_variable("region", bucket.region)
        if bucket.credentials_file:
            self._session.set_config_variable("credentials_file", bucket.credentials_file)
        self._role_arn = bucket.role_arn
        self._source: Any = None
        self._assumed: AccessKeys | None = None
        self._assume_at = 0.0

    # --- keys ---------------------------------------------------------------------------------

    def keys(self) -> AccessKeys:
        """Return keys that remain valid for a while; fast unless they have to be fetched."""
        with _translate_errors("credentials"):
            if self._role_arn and self._clock() < self._assume_at and self._assumed:
                return self._assumed
            own = self._own_keys()
            return self._assume_role(own) if self._role_arn else own

    def _own_keys(self) -> AccessKeys:
        """The keys of the source, without a role."""
        bucket = self._bucket
        if bucket.access_key:
            return AccessKeys(bucket.access_key, bucket.secret_key, bucket.session_token or None)
        if self._source is None:
            self._source = self._find()
        frozen = self._source.get_frozen_credentials()
        keys = AccessKeys(frozen.access_key, frozen.secret_key, frozen.token)
        if bucket.credential_source == "file":
            self._source = None  # Its content may change.
        return keys

    def _find(self) -> Any:
        """The library's credentials of the source; the library refreshes them."""
        resolver = credentials.create_credential_resolver(
            self._session, region_name=self._bucket.region
        )
        by_name = {provider.METHOD: provider for provider in resolver.providers}
        by_name["assume-role-with-web-identity"] = self._web_identity()
        for name in _PROVIDERS[self._bucket.credential_source]:
            loaded = by_name[name].load() if name in by_name else None
            if loaded is not None:
                return loaded
        source = self._bucket.credential_source
        raise ConfigError(f"no credentials for S3: {_MISSING[source]}")

    def _web_identity(self) -> Any:
        """Like the library's provider, but with our STS endpoint and, by default, our role."""
        profile = {"role_arn": self._bucket.role_arn} if self._bucket.role_arn else {}
        return credentials.AssumeRoleWithWebIdentityProvider(
            load_config=lambda: {"profiles": {_SESSION_NAME: profile}},
            client_creator=lambda service, config: self._client(service, None, config),
            profile_name=_SESSION_NAME,
        )

    def _assume_role(self, own: AccessKeys) -> AccessKeys:
        """Assume the role, and again after half of its duration."""
        sts = self._client("sts", own)
        if self._bucket.credential_source == "workload-identity" and is_role(
            sts.get_caller_identity()["Arn"], self._role_arn
        ):
            self._role_arn = ""  # The source already has this role.
            return own
        response = sts.assume_role(RoleArn=self._role_arn, RoleSessionName=_SESSION_NAME)
        session = response["Credentials"]
        self._assumed = AccessKeys(
            session["AccessKeyId"], session["SecretAccessKey"], session["SessionToken"]
        )
        self._assume_at = (self._clock() + session["Expiration"].timestamp()) / 2
        return self._assumed

    # --- buckets ------------------------------------------------------------------------------

    def create_bucket(self) -> bool:
        """Create the bucket unless this account has it already; return whether it is new."""
        location = {"CreateBucketConfiguration": {"LocationConstraint": self._bucket.region}}
        with _translate_errors("create bucket"):
            s3 = self._client("s3", self.keys())
            try:
                s3.create_bucket(
                    Bucket=self._bucket.short_name,
                    # us-east-1 must not be given as a location constraint.
                    **({} if self._bucket.region == "us-east-1" else location),
                )
            except ClientError as error:
                if error.response["Error"]["Code"] != "BucketAlreadyOwnedByYou":
                    raise
                return False
            return True

    def region(self) -> str:
        """The region of the bucket; empty if the server does not report one."""
        with _translate_errors("find bucket"):
            response = self._client("s3", self.keys()).head_bucket(Bucket=self._bucket.short_name)
        return str(response.get("BucketRegion") or "")

    def replicate(self, rule: Mapping[str, Any], role_arn: str) -> bool:
        """Add a replication rule and enable versioning; return whether the rule is new."""
        name = self._bucket.short_name
        with _translate_errors("replicate"):
            s3 = self._client("s3", self.keys())
            try:
                config = s3.get_bucket_replication(Bucket=name)["ReplicationConfiguration"]
            except ClientError as error:
                if error.response["Error"]["Code"] != "ReplicationConfigurationNotFoundError":
                    raise
                config = {"Role": "", "Rules": []}
            others = [each for each in config["Rules"] if each.get("ID") != rule["ID"]]
            if config["Role"] == role_arn and rule in config["Rules"]:
                return False
            s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
            s3.put_bucket_replication(
                Bucket=name,
                ReplicationConfiguration={"Role": role_arn, "Rules": [*others, dict(rule)]},
            )
            return True

    def read_lifecycle(self) -> dict[str, Any]:
        """The lifecycle configuration of the bucket, which can be written back."""
        with _translate_errors("read lifecycle rules"):
            try:
                response = self._client("s3", self.keys()).get_bucket_lifecycle_configuration(
                    Bucket=self._bucket.short_name
                )
            except ClientError as error:
                if error.response["Error"]["Code"] != "NoSuchLifecycleConfiguration":
                    raise
                return {"Rules": []}
        return {name: value for name, value in response.items() if name != "ResponseMetadata"}

    def write_lifecycle(
        self, current: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]
    ) -> None:
        """Replace the rules in the configuration that was read."""
        others = {name: value for name, value in current.items() if name != "Rules"}
        with _translate_errors("write lifecycle rules"):
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

    def _client(self, service: str, keys: AccessKeys | None, config: Config | None = None) -> Any:
        bucket = self._bucket
        endpoint = bucket.sts_endpoint if service == "sts" else bucket.endpoint
        ours = Config(
            connect_timeout=bucket.connect_timeout_ms / 1000,
            read_timeout=bucket.request_timeout_ms / 1000,
            retries={"total_max_attempts": _ATTEMPTS_MAX, "mode": "standard"},
            s3={"addressing_style": "path" if bucket.uses_path_style else "virtual"},
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
def _translate_errors(what: str) -> Iterator[None]:
    """Turn the library's errors into ours."""
    try:
        yield
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        passing = status >= 500 or status == 429 or code in _PASSING_CODES
        kind = StoreUnavailableError if passing else OperatingError
        operation = error.operation_name
        advice = _ADVICE.get(operation, "")
        raise kind(f"{what}: {operation}: {code}, {message}{advice}") from None
    except NotConnectedError as error:
        reason = f"{error}; check s3.endpoint and s3.stsEndpoint"
        raise StoreUnavailableError(f"{what}: {reason}") from None
    except _PASSING_ERRORS as error:
        raise StoreUnavailableError(f"{what}: {error}") from None
    except ProfileNotFound as error:
        raise ConfigError(f"{what}: {error}; check s3.profile and s3.credentialsFile") from None
    except BotoCoreError as error:
        raise OperatingError(f"{what}: {error}") from None
