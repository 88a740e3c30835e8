"""Reconciles the bucket of a cluster: access, creation on request, lifecycle rules, replication.

Invariants: a bucket is created only if the spec asks for it. Nothing is ever deleted here. While a
bucket cannot be used, brokers are not changed, and a condition says what to do. The operator's own
identity is used only for what `TenantRules` allows.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

import msgspec

from kafscale.errors import KafscaleError, KubeError
from kafscale.metadata.schema.model import Topic
from kafscale.metadata.topics.config_defs import WEEK_MS
from kafscale.metadata.topics.config_types import split_list
from kafscale.metadata.topics.config_validation import DELETE
from kafscale.operator import secrets
from kafscale.operator.kube.api import NODES, SECRETS, Kube
from kafscale.operator.spec.cluster import Cluster
from kafscale.operator.spec.s3 import ArchiveSpec, S3Spec
from kafscale.operator.spec.status import TRUE, Condition, bad, ok
from kafscale.operator.tenants import NotAllowedError, TenantRules
from kafscale.storage.objects.factory import probe_access
from kafscale.storage.objects.s3.bucket_admin import (
    BucketLifecycle,
    bucket_region,
    create_bucket,
    replicate,
)
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.lifecycle import FOREVER, Archive, TopicRetention
from kafscale.storage.objects.s3.store import S3ObjectStore

READY: Final = "BucketReady"
REGION: Final = "RegionMatches"
ENCRYPTION: Final = "CustomerManagedKey"
REPLICATION: Final = "Replication"
LIFECYCLE: Final = "Lifecycle"
CHECK_INTERVAL_MS: Final = 300_000
"""How often a usable bucket is checked again."""
LIFECYCLE_INTERVAL_MS: Final = 3_600_000
"""How often unchanged lifecycle rules are written again."""

_REGION_LABEL: Final = "topology.kubernetes.io/region"


class BucketState(msgspec.Struct, frozen=True):
    """The observed state of a bucket."""

    is_ready: bool
    conditions: list[Condition]


class _Checked(msgspec.Struct, frozen=True):
    """The result of a check, with its inputs and time."""

    inputs: tuple[S3Spec, S3Bucket]
    state: BucketState
    at_ms: int


class _AppliedLifecycle(msgspec.Struct, frozen=True):
    """The lifecycle rules last applied, and when."""

    inputs: tuple[S3Bucket, frozenset[TopicRetention], Archive | None]
    at_ms: int


class BucketReconciler:
    """Reconciles the buckets of clusters."""

    def __init__(self, kube: Kube, clock: Callable[[], int], rules: TenantRules) -> None:
        """`clock` is in milliseconds."""
        self._kube = kube
        self._rules = rules
        self._clock = clock
        self._checked: dict[str, _Checked] = {}
        self._lifecycles: dict[str, _AppliedLifecycle] = {}

    async def reconcile(self, cluster: Cluster) -> BucketState:
        """Check the bucket, and create it if the spec asks for that.

        A usable bucket is checked again only after a while, or when its spec or keys change.
        """
        key = f"{cluster.namespace}/{cluster.name}"
        try:
            bucket = await self.bucket(cluster)
        except KubeError:
            raise
        except NotAllowedError as error:
            return BucketState(False, [_encryption(cluster), bad(READY, "NotAllowed", str(error))])
        except KafscaleError as error:
            return BucketState(False, [_encryption(cluster), bad(READY, "NoKeys", str(error))])
        inputs = (cluster.spec.s3, bucket)
        checked = self._checked.get(key)
        if (
            checked is None
            or checked.inputs != inputs
            or self._is_expired(checked.at_ms, CHECK_INTERVAL_MS)
        ):
            state = await self._check(cluster, bucket)
            checked = _Checked(inputs, state, self._clock() if state.is_ready else 0)
            self._checked[key] = checked
        return checked.state

    async def _check(self, cluster: Cluster, bucket: S3Bucket) -> BucketState:
        conditions = [_encryption(cluster), await self._region(cluster)]
        try:
            conditions.append(await self._access(cluster, bucket))
            if cluster.spec.s3.replication:
                conditions.append(await self._replicate(cluster, bucket))
        except KafscaleError as error:
            conditions.append(bad(READY, "Unusable", f"bucket {bucket.short_name}: {error}"))
        is_ready = any(each.type == READY and each.status == TRUE for each in conditions)
        return BucketState(is_ready, conditions)

    def _is_expired(self, at_ms: int, age_ms_max: int) -> bool:
        return self._clock() - at_ms >= age_ms_max

    async def bucket(self, cluster: Cluster) -> S3Bucket:
        """The bucket of the records, with the operator's access to it."""
        return await self.bucket_config(cluster, cluster.spec.s3)

    async def bucket_config(self, cluster: Cluster, s3: S3Spec) -> S3Bucket:
        """A bucket of a cluster with the keys of a Secret, or with the operator's own identity.

        Raises `NotAllowedError` if the operator may not use it.
        """
        namespace = cluster.namespace
        await self._rules.check_s3_server(namespace, s3)
        keys = secrets.Keys()
        if secret := s3.secret:
            manifest = await self._kube.get(SECRETS, namespace, secret)
            if manifest is None:
                raise KafscaleError(f"the Secret {secret!r} does not exist in {namespace}")
            secret_keys = secrets.keys(manifest)
            if secret_keys is None and s3.credential_source == "env":
                raise KafscaleError(
                    f"the Secret {secret!r} has no entries KAFSCALE_S3_ACCESS_KEY and"
                    " KAFSCALE_S3_SECRET_KEY"
                )
            keys = secret_keys or keys
        if not keys.access_key:
            self._rules.check_own_identity(namespace, s3, cluster.object_namespace)
        return S3Bucket(
            name=s3.bucket,
            region=s3.region,
            endpoint=s3.endpoint,
            path_style=s3.uses_path_style,
            credential_source=s3.credential_source,
            access_key=keys.access_key,
            secret_key=keys.secret_key,
            session_token=keys.session_token,
            role_arn=s3.role_arn,
            kms_key_arn=s3.kms_key_arn,
        )

    async def reconcile_lifecycle(
        self, cluster: Cluster, topics: Iterable[Topic]
    ) -> list[Condition]:
        """Make the bucket's lifecycle rules follow the retention of topics."""
        if not cluster.spec.s3.manage_lifecycle:
            return []
        key = f"{cluster.namespace}/{cluster.name}"
        retentions = frozenset(
            TopicRetention(topic.directory, retention_ms(topic.configs)) for topic in topics
        )
        try:
            bucket, archive = await self.bucket(cluster), _archive(cluster.spec.s3.archive)
            inputs = (bucket, retentions, archive)
            applied = self._lifecycles.get(key)
            if (
                applied is None
                or applied.inputs != inputs
                or self._is_expired(applied.at_ms, LIFECYCLE_INTERVAL_MS)
            ):
                lifecycle = BucketLifecycle(bucket, cluster.object_namespace, archive)
                await lifecycle.apply(retentions)
                self._lifecycles[key] = _AppliedLifecycle(inputs, self._clock())
        except KubeError:
            raise
        except KafscaleError as error:
            return [bad(LIFECYCLE, "NotWritten", f"lifecycle rules are not up to date: {error}")]
        return [ok(LIFECYCLE, "UpToDate")]

    def forget(self, namespace: str, name: str) -> None:
        """Drop the state of a deleted cluster."""
        self._checked.pop(f"{namespace}/{name}", None)
        self._lifecycles.pop(f"{namespace}/{name}", None)

    async def _access(self, cluster: Cluster, bucket: S3Bucket) -> Condition:
        s3 = cluster.spec.s3
        store = S3ObjectStore(bucket)
        created: list[str] = []

        async def create() -> None:
            await create_bucket(bucket)
            created.append(bucket.short_name)

        try:
            await store.authenticate()
            inputs = create if s3.create_bucket else None
            await probe_access(store, cluster.object_namespace, inputs)
        finally:
            await store.close()
        actual = ""
        with suppress(KafscaleError):  # Not all servers and policies support it.
            actual = await bucket_region(bucket)
        if actual and actual != s3.region:
            return bad(
                READY,
                "RegionMismatch",
                f"the bucket is in {actual}, but s3.region is {s3.region}: correct one of them",
            )
        return ok(READY, "Created" if created else "Accessible")

    async def _region(self, cluster: Cluster) -> Condition:
        """Whether the nodes are in the bucket's region, as far as their labels say."""
        nodes = await self._kube.list(NODES)
        regions = {(node["metadata"].get("labels") or {}).get(_REGION_LABEL) for node in nodes}
        other_regions = sorted(
            region for region in regions if region and region != cluster.spec.s3.region
        )
        if other_regions:
            return bad(
                REGION,
                "RegionMismatch",
                f"nodes are in {', '.join(other_regions)}, but the bucket is in"
                f" {cluster.spec.s3.region}: traffic between regions is charged",
            )
        return ok(REGION, "SameRegion" if regions - {None} else "NodeRegionUnknown")

    async def _replicate(self, cluster: Cluster, bucket: S3Bucket) -> Condition:
        s3 = cluster.spec.s3
        try:
            await replicate(
                bucket,
                cluster.object_namespace,
                destination_arn=s3.replication_bucket,
                role_arn=s3.replication_role_arn,
            )
        except KafscaleError as error:
            return bad(REPLICATION, "NotSetUp", str(error))
        return ok(REPLICATION, "SetUp", f"to {s3.replication_bucket}")


def retention_ms(configs: Mapping[str, str]) -> int:
    """The minimum retention of a topic's records; -1 (forever) if it is only compacted.

    >>> retention_ms({"retention.ms": "1000"}), retention_ms({"cleanup.policy": "compact"})
    (1000, -1)
    """
    if DELETE not in split_list(configs.get("cleanup.policy", DELETE)):
        return FOREVER
    return int(configs.get("retention.ms", WEEK_MS))


def _archive(spec: ArchiveSpec) -> Archive | None:
    return Archive(spec.after_days, spec.storage_class) if spec.enabled else None


def _encryption(cluster: Cluster) -> Condition:
    if cluster.spec.s3.kms_key_arn:
        return ok(ENCRYPTION, "KmsKey")
    return bad(
        ENCRYPTION,
        "StoreKeys",
        "objects are encrypted with keys of the store: set s3.kmsKeyArn to use your own key",
    )
