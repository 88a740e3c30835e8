"""The bucket of a cluster: found, or made on request, before any broker is; its rules and its copy.

The laws: a bucket is made only where the spec asks for it; nothing is ever deleted here; and a
bucket that cannot be used stops brokers from being changed, with a condition that says what to do.
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
from kafscale.observability.logging import get_logger
from kafscale.operator.cluster import secrets
from kafscale.operator.conditions import TRUE, Condition, bad, ok
from kafscale.operator.kube.api import Kube
from kafscale.operator.kube.kinds import NODES, SECRETS
from kafscale.operator.spec.cluster import Cluster
from kafscale.operator.spec.s3 import S3Spec
from kafscale.storage.objects.conditional_put_probe import probe_access
from kafscale.storage.objects.s3.bucket_admin import (
    BucketLifecycle,
    bucket_region,
    create_bucket,
    replicate,
)
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.lifecycle import FOREVER, TopicRetention
from kafscale.storage.objects.s3.store import S3ObjectStore

log = get_logger(__name__)

READY: Final = "BucketReady"
REGION: Final = "RegionMatches"
ENCRYPTION: Final = "CustomerManagedKey"
REPLICATION: Final = "Replication"
LIFECYCLE: Final = "Lifecycle"
LOOK_MS: Final = 300_000
"""How often it is made sure that a bucket which could be used still can be."""
RULES_MS: Final = 3_600_000
"""How often rules are written again that should not have changed."""

_REGION_LABEL: Final = "topology.kubernetes.io/region"


class BucketState(msgspec.Struct, frozen=True):
    """How a bucket is."""

    is_ready: bool
    conditions: list[Condition]


class _Seen(msgspec.Struct, frozen=True):
    """What was seen of a bucket, with which spec and keys, and when."""

    wanted: tuple[S3Spec, S3Bucket]
    state: BucketState
    at_ms: int


class _Ruled(msgspec.Struct, frozen=True):
    """Which rules a bucket was given, and when."""

    wanted: tuple[S3Bucket, frozenset[TopicRetention]]
    at_ms: int


class BucketKeeper:
    """Looks after the buckets of clusters."""

    def __init__(self, kube: Kube, clock: Callable[[], int]) -> None:
        """`clock` is in milliseconds."""
        self._kube = kube
        self._clock = clock
        self._seen: dict[str, _Seen] = {}
        self._ruled: dict[str, _Ruled] = {}

    async def ensure(self, cluster: Cluster) -> BucketState:
        """See that the bucket can be used; make it, if that is asked for.

        One that could be used is not looked at again for a while, unless its spec or keys change.
        """
        key = f"{cluster.namespace}/{cluster.name}"
        try:
            bucket = await self.bucket(cluster)
        except KubeError:
            raise
        except KafscaleError as error:
            return BucketState(False, [_encryption(cluster), bad(READY, "NoKeys", str(error))])
        wanted = (cluster.spec.s3, bucket)
        seen = self._seen.get(key)
        if seen is None or seen.wanted != wanted or self._is_old(seen.at_ms, LOOK_MS):
            state = await self._look(cluster, bucket)
            seen = _Seen(wanted, state, self._clock() if state.is_ready else 0)
            self._seen[key] = seen
        return seen.state

    async def _look(self, cluster: Cluster, bucket: S3Bucket) -> BucketState:
        conditions = [_encryption(cluster), await self._region(cluster)]
        try:
            conditions.append(await self._access(cluster, bucket))
            if cluster.spec.s3.replication:
                conditions.append(await self._replicate(cluster, bucket))
        except KafscaleError as error:
            conditions.append(bad(READY, "Unusable", f"bucket {bucket.short_name}: {error}"))
        is_ready = any(each.type == READY and each.status == TRUE for each in conditions)
        return BucketState(is_ready, conditions)

    def _is_old(self, at_ms: int, age_ms_max: int) -> bool:
        return self._clock() - at_ms >= age_ms_max

    async def bucket(self, cluster: Cluster) -> S3Bucket:
        """The bucket of the records, as the operator itself may open it."""
        return await self.opened(cluster.namespace, cluster.spec.s3)

    async def opened(self, namespace: str, s3: S3Spec) -> S3Bucket:
        """A bucket with the keys of a Secret, or with those of the operator's own role."""
        found = secrets.Keys()
        if secret := s3.secret:
            manifest = await self._kube.get(SECRETS, namespace, secret)
            if manifest is None:
                raise KafscaleError(f"there is no Secret {secret!r} in {namespace}")
            in_it = secrets.keys(manifest)
            if in_it is None and s3.credential_source == "env":
                raise KafscaleError(
                    f"the Secret {secret!r} has no entries KAFSCALE_S3_ACCESS_KEY and"
                    " KAFSCALE_S3_SECRET_KEY"
                )
            found = in_it or found
        return S3Bucket(
            name=s3.bucket,
            region=s3.region,
            endpoint=s3.endpoint,
            path_style=s3.uses_path_style,
            credential_source=s3.credential_source,
            access_key=found.access_key,
            secret_key=found.secret_key,
            session_token=found.session_token,
            role_arn=s3.role_arn,
            kms_key_arn=s3.kms_key_arn,
        )

    async def keep_lifecycle(self, cluster: Cluster, topics: Iterable[Topic]) -> list[Condition]:
        """Have the bucket's rules follow the retention of topics."""
        if not cluster.spec.s3.manage_lifecycle:
            return []
        key = f"{cluster.namespace}/{cluster.name}"
        retentions = frozenset(
            TopicRetention(topic.name, retention_ms(topic.configs)) for topic in topics
        )
        try:
            wanted = (await self.bucket(cluster), retentions)
            ruled = self._ruled.get(key)
            if ruled is None or ruled.wanted != wanted or self._is_old(ruled.at_ms, RULES_MS):
                await BucketLifecycle(wanted[0], cluster.object_namespace).apply(retentions)
                self._ruled[key] = _Ruled(wanted, self._clock())
        except KubeError:
            raise
        except KafscaleError as error:
            return [bad(LIFECYCLE, "NotWritten", f"lifecycle rules are not up to date: {error}")]
        return [ok(LIFECYCLE, "UpToDate")]

    def forget(self, namespace: str, name: str) -> None:
        """Let go of a cluster."""
        self._seen.pop(f"{namespace}/{name}", None)
        self._ruled.pop(f"{namespace}/{name}", None)

    async def _access(self, cluster: Cluster, bucket: S3Bucket) -> Condition:
        s3 = cluster.spec.s3
        store = S3ObjectStore(bucket)
        made: list[str] = []

        async def create() -> None:
            await create_bucket(bucket)
            made.append(bucket.short_name)

        try:
            await store.authenticate()
            wanted = create if s3.create_bucket else None
            await probe_access(store, cluster.object_namespace, wanted)
        finally:
            await store.close()
        actual = ""
        with suppress(KafscaleError):  # Some servers have no regions, some policies forbid to ask.
            actual = await bucket_region(bucket)
        if actual and actual != s3.region:
            return bad(
                READY,
                "RegionMismatch",
                f"the bucket is in {actual}, and s3.region says {s3.region}: correct one of them",
            )
        return ok(READY, "Created" if made else "Accessible")

    async def _region(self, cluster: Cluster) -> Condition:
        """Whether the nodes of Kubernetes are where the bucket is, as far as they tell."""
        nodes = await self._kube.list(NODES)
        regions = {(node["metadata"].get("labels") or {}).get(_REGION_LABEL) for node in nodes}
        others = sorted(region for region in regions if region and region != cluster.spec.s3.region)
        if others:
            return bad(
                REGION,
                "RegionMismatch",
                f"nodes are in {', '.join(others)}, the bucket in {cluster.spec.s3.region}: every"
                " byte between them is paid for",
            )
        return ok(REGION, "SameRegion" if regions - {None} else "NodesTellNoRegion")

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
    """How long a topic's records are kept at the least; compacted ones for ever.

    >>> retention_ms({"retention.ms": "1000"}), retention_ms({"cleanup.policy": "compact"})
    (1000, -1)
    """
    if DELETE not in split_list(configs.get("cleanup.policy", DELETE)):
        return FOREVER
    return int(configs.get("retention.ms", WEEK_MS))


def _encryption(cluster: Cluster) -> Condition:
    if cluster.spec.s3.kms_key_arn:
        return ok(ENCRYPTION, "KmsKey")
    return bad(
        ENCRYPTION,
        "StoreKeys",
        "objects are encrypted with keys of the store: set s3.kmsKeyArn to a key of yours",
    )
