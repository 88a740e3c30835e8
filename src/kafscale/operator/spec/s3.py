"""The bucket of a cluster, in its spec."""

from typing import Annotated, Literal

from msgspec import Meta, field

from kafscale.operator.spec.base import BucketName, OptionalObjectName, Region, Spec, text


class ArchiveSpec(Spec, frozen=True, kw_only=True):
    """When objects that are kept in the archive of a cluster become cheaper to store."""

    enabled: Annotated[
        bool,
        text(
            "Move objects below archive/NAMESPACE/ to another storage class, where NAMESPACE is the"
            " prefix of the cluster's objects. Brokers write nothing there; copies and exports of"
            " records may. Needs manageLifecycle."
        ),
    ] = False
    after_days: Annotated[
        int, Meta(ge=1, le=36_500, description="The age of an object when it is moved, in days.")
    ] = 30
    storage_class: Annotated[
        Literal["STANDARD_IA", "INTELLIGENT_TIERING", "GLACIER_IR", "GLACIER", "DEEP_ARCHIVE"],
        text("The storage class; objects in GLACIER and DEEP_ARCHIVE are restored before a read."),
    ] = "GLACIER"


class S3Spec(Spec, frozen=True, kw_only=True):
    """The bucket of the records."""

    bucket: Annotated[BucketName, text("The name or ARN of the bucket.")]
    region: Annotated[Region, text("The region of the bucket and of this cluster.")] = "us-east-1"
    endpoint: Annotated[
        str, text("The URL of an S3-compatible server such as MinIO. Empty: AWS.")
    ] = ""
    path_style: Annotated[
        bool | None, text("Use path-style URLs. Unset: true if an endpoint is set.")
    ] = None
    namespace: Annotated[
        str,
        Meta(
            pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,62})?$",
            description="The prefix of all objects. Empty: NAMESPACE.NAME of this resource, so"
            " that clusters can share a bucket. Immutable.",
        ),
    ] = ""
    kms_key_arn: Annotated[
        str, text("The KMS key that encrypts objects. Empty: S3-managed keys.")
    ] = ""
    storage_class: Annotated[
        Literal["STANDARD", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR"],
        text(
            "The storage class of segments. Indexes and the write-ahead log are small or"
            " short-lived, and are always STANDARD."
        ),
    ] = "STANDARD"
    credentials_secret_ref: Annotated[
        OptionalObjectName,
        text(
            "The Secret with KAFSCALE_S3_ACCESS_KEY, KAFSCALE_S3_SECRET_KEY and optionally"
            " KAFSCALE_S3_SESSION_TOKEN (or AWS's names for them). When it changes, brokers are"
            " drained and restarted one at a time."
        ),
    ] = ""
    credentials_secret: Annotated[
        OptionalObjectName,
        text("An alias of credentialsSecretRef, which takes precedence if both are set."),
    ] = ""
    credential_source: Annotated[
        Literal["env", "iam", "workload-identity"],
        text("The source of keys: a Secret, the node's role, or the ServiceAccount's role."),
    ] = "env"
    role_arn: Annotated[str, text("A role to assume with those keys. Empty: none.")] = ""
    create_bucket: Annotated[
        bool,
        text(
            "Create the bucket if it does not exist. Its name must be kafscale-ENVIRONMENT-REGION."
        ),
    ] = False
    environment: Annotated[
        str,
        Meta(
            max_length=32,
            pattern=r"^([a-z0-9][a-z0-9-]*)?$",
            description="The environment in the name of a bucket that the operator creates, such"
            " as prod.",
        ),
    ] = ""
    manage_lifecycle: Annotated[
        bool,
        text(
            "Maintain a lifecycle rule per topic in the bucket, in addition to the brokers' own"
            " retention."
        ),
    ] = True
    archive: ArchiveSpec = field(default_factory=ArchiveSpec)
    replication: Annotated[
        bool, text("Replicate objects to replicationBucket, in case a region is lost.")
    ] = False
    replication_bucket: Annotated[str, text("The ARN of the destination bucket.")] = ""
    replication_role_arn: Annotated[str, text("The role that S3 assumes to replicate.")] = ""

    @property
    def secret(self) -> str:
        return self.credentials_secret_ref or self.credentials_secret

    @property
    def uses_path_style(self) -> bool:
        """Whether the bucket is named in the path of URLs."""
        return bool(self.endpoint) if self.path_style is None else self.path_style
