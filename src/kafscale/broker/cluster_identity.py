"""Establishes which cluster a broker belongs to, before it writes anything.

A metadata store and a namespace of a bucket belong together: both contain the cluster id, the
namespace in its topic catalog. Invariants:

* A broker never joins a cluster whose namespace belongs to another one. It would fence the streams
  of brokers that it does not know, and overwrite their segments and their catalog.
* A metadata store without a cluster id is new, or its content is lost. It gets a new id only if
  the namespace has no records. Otherwise the user decides: lost metadata is restored from the
  bucket, and a wrong endpoint or namespace is corrected. Only if the objects are local files next
  to the metadata, so that no other cluster can own them, the broker restores by itself.
* A store that is older than the catalog of its own cluster is marked as restored.
"""

from collections.abc import Callable
from typing import Final

from kafscale.broker.stores import is_remote
from kafscale.config import Config
from kafscale.errors import DamagedObjectError, ObjectNotFoundError, OperatingError
from kafscale.metadata.cluster import id_allocator
from kafscale.metadata.cluster.restore_marker import (
    find_pending_restore,
    mark_restored,
    restore_mark,
)
from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import MetadataStore, Operation
from kafscale.observability.logging import get_logger
from kafscale.storage import topic_catalog
from kafscale.storage.bucket import list_objects
from kafscale.storage.formats.object_keys import LogStartRef, SegmentRef, WalRef
from kafscale.storage.objects.factory import describe_objects
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.topic_catalog import Catalog

logger = get_logger(__name__)

LOST_METADATA: Final = (
    "the metadata store is empty, but {objects} already has records in namespace {namespace!r}:"
    " nothing was changed. If this is the wrong metadata store, bucket or namespace, correct"
    " etcd.endpoints, s3.bucket or s3.namespace. If the metadata is lost, make sure that no other"
    " broker uses the namespace, and restore a snapshot (kafscale etcd restore), or rebuild the"
    " topics from the bucket: run `kafscale etcd restored`, then start the brokers"
)

OTHER_CLUSTER: Final = (
    "namespace {namespace!r} of {objects} belongs to cluster {theirs}, and the metadata store to"
    " cluster {ours}: nothing was changed. Correct etcd.endpoints or s3.bucket, or use another"
    " s3.namespace. If the records are to be served with this metadata store, make sure that no"
    " other broker uses the namespace, run `kafscale etcd restored --cluster-id {theirs}`, then"
    " start the brokers"
)


async def establish_cluster_id(
    metadata: MetadataStore,
    objects: ObjectStore,
    config: Config,
    *,
    candidate: str,
    clock: Callable[[], int],
) -> str:
    """Return the id of the cluster, or raise if metadata and bucket do not belong together.

    A new cluster gets the id `candidate`, a restored one that of the catalog.
    """
    # In this order: a restore replaces the catalog before it is complete, and a new cluster has an
    # id before it has a catalog.
    pending = await find_pending_restore(metadata)
    catalog = await _read_catalog(objects, config.s3.namespace)
    own = await _cluster_id(metadata)
    theirs = catalog.cluster_id if catalog else ""
    if own is None:
        own = await _claim(
            metadata,
            objects,
            config,
            has_catalog=catalog is not None,
            candidate=theirs or candidate,
            clock=clock,
        )
        pending = await find_pending_restore(metadata)
    if theirs not in {"", own} and not (pending and pending.info.cluster_id == theirs):
        raise OperatingError(
            OTHER_CLUSTER.format(
                namespace=config.s3.namespace,
                objects=describe_objects(config),
                theirs=theirs,
                ours=own,
            )
        )
    if catalog and theirs == own and not pending:
        await _check_revision(metadata, catalog, clock)
    return own


async def _claim(
    metadata: MetadataStore,
    objects: ObjectStore,
    config: Config,
    *,
    has_catalog: bool,
    candidate: str,
    clock: Callable[[], int],
) -> str:
    """Set the cluster id, unless another broker does; raise if the namespace is not ours."""
    namespace = config.s3.namespace
    operations: list[Operation] = []
    is_used = has_catalog or await _has_records(objects, namespace)
    # Read the id again: another broker may have set it, and written to the namespace since.
    is_lost = is_used and await _cluster_id(metadata) is None
    if is_lost and not await find_pending_restore(metadata):
        if config.etcd.endpoints or is_remote(config):
            raise OperatingError(
                LOST_METADATA.format(objects=describe_objects(config), namespace=namespace)
            )
        logger.warning("metadata is lost, and restored from the objects", namespace=namespace)
        operations.append(restore_mark(restored_at_ms=clock()))
    return await id_allocator.cluster_id(metadata, candidate, *operations)


async def _cluster_id(metadata: MetadataStore) -> str | None:
    entry = await metadata.get(keys.CLUSTER_ID)
    return entry.value.decode() if entry else None


async def _read_catalog(objects: ObjectStore, namespace: str) -> Catalog | None:
    try:
        return (await topic_catalog.read(objects, namespace))[0]
    except ObjectNotFoundError:
        return None
    except DamagedObjectError as error:
        logger.warning("damaged topic catalog", key=error.key, reason=error.reason)
        return None


async def _has_records(objects: ObjectStore, namespace: str) -> bool:
    """Whether brokers have written to a namespace; probes and job runs do not count."""
    async for ref, _ in list_objects(objects, namespace, f"{namespace}/"):
        if isinstance(ref, SegmentRef | LogStartRef | WalRef):
            return True
    return False


async def _check_revision(
    metadata: MetadataStore, catalog: Catalog, clock: Callable[[], int]
) -> None:
    """Mark a store that is older than its catalog, which was read before."""
    revision = (await metadata.range(keys.CLUSTER_ID)).revision
    if revision < catalog.revision:
        logger.error(
            "metadata is older than the bucket", revision=revision, catalog=catalog.revision
        )
        await mark_restored(metadata, restored_at_ms=clock())
