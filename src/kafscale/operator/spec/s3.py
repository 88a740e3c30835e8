"""The bucket of a cluster, as its resource says it."""

from typing import Annotated, Literal

from msgspec import Meta

from kafscale.operator.spec.base import BucketName, Spec, text


class S3Spec(Spec, frozen=True, kw_only=True):
    """The bucket."""

    bucket: Annotated[BucketName, text("The bucket that holds all records, by name or ARN.")]
    region: Annotated[
        str, Meta(max_length=64, description="The region of the bucket, and of this cluster.")
    ] = "us-east-1"
    endpoint: Annotated[
        str, text("The address of an S3-compatible server such as MinIO. Empty is AWS.")
    ] = ""
    path_style: Annotated[
        bool | None,
        text("Whether the bucket is named in the path of URLs. Unset: if there is an endpoint."),
    ] = None
    namespace: Annotated[
        str,
        Meta(
            pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,62})?$",
            description="The prefix of all objects. Empty is NAMESPACE.NAME of this resource, so"
            " that clusters can share a bucket. It cannot be changed.",
        ),
    ] = ""
    kms_key_arn: Annotated[
        str, text("The KMS key that encrypts objects. Empty leaves that to S3's own keys.")
    ] = ""
    credentials_secret_ref: Annotated[
        str,
        text(
            "The Secret with KAFSCALE_S3_ACCESS_KEY, KAFSCALE_S3_SECRET_KEY and perhaps"
            " KAFSCALE_S3_SESSION_TOKEN (or AWS's names for them). Brokers are restarted, one after"
            " the other and drained first, when it changes."
        ),
    ] = ""
    credentials_secret: Annotated[
        str, text("Another spelling of credentialsSecretRef, which wins where both are given.")
    ] = ""
    credential_source: Annotated[
        Literal["env", "iam", "workload-identity"],
        text("Where keys come from: a Secret, the machine's role, or the ServiceAccount's role."),
    ] = "env"
    role_arn: Annotated[
        str, text("A role that is assumed with those keys. Empty assumes none.")
    ] = ""
    create_bucket: Annotated[
        bool,
        text(
            "Whether the operator makes the bucket if there is none. It is then called"
            " kafscale-ENVIRONMENT-REGION."
        ),
    ] = False
    environment: Annotated[
        str,
        Meta(
            max_length=32,
            pattern=r"^([a-z0-9][a-z0-9-]*)?$",
            description="The environment that a bucket made by the operator is for, such as prod.",
        ),
    ] = ""
    manage_lifecycle: Annotated[
        bool,
        text(
            "Whether the operator keeps lifecycle rules in the bucket, one a topic: a safety net"
            " below the brokers' own retention."
        ),
    ] = True
    replication: Annotated[
        bool,
        text(
            "Whether objects are replicated to replicationBucket, for disasters that take a region."
        ),
    ] = False
    replication_bucket: Annotated[str, text("The ARN of the bucket in another region.")] = ""
    replication_role_arn: Annotated[str, text("The role that S3 replicates with.")] = ""

    @property
    def secret(self) -> str:
        return self.credentials_secret_ref or self.credentials_secret

    @property
    def uses_path_style(self) -> bool:
        """Whether the bucket is named in the path of URLs."""
        return bool(self.endpoint) if self.path_style is None else self.path_style
