"""Creates a broker's object store from its settings, and checks that it works.

Layers, from the outside: retries, a limit of concurrent requests, reads of segments from a replica
bucket if configured, and metrics for every attempt. Only the main bucket is checked and counts for
store health, because only it is written to; a failing replica causes no outage.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random

from kafscale.config import Config
from kafscale.errors import ConfigError, ObjectChangedError, ObjectExistsError, OperatingError
from kafscale.observability.logging import get_logger
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.layers.limited import LimitedObjectStore
from kafscale.storage.objects.layers.observed import (
    ObservedObjectStore,
    OperationObserver,
    replica_observer,
)
from kafscale.storage.objects.layers.replica import ReplicaReadingObjectStore
from kafscale.storage.objects.layers.retrying import RetryingObjectStore
from kafscale.storage.objects.s3.bucket_admin import BucketLifecycle, create_bucket
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.errors import MissingBucketError
from kafscale.storage.objects.s3.store import S3ObjectStore
from kafscale.storage.objects.store import ObjectStore

logger = get_logger(__name__)

REPLICA_TIMEOUT_MS_MAX = 2000
"""Request timeout of a replica; a slower one is not worth waiting for."""


def create_store(
    config: Config, on_operation: OperationObserver, random: Random
) -> tuple[ObjectStore, Callable[[], Awaitable[None]]]:
    """Return the store with all layers, and a function that raises if it cannot be used."""
    s3 = config.s3
    if not s3.kms_key_arn:
        logger.warning(
            "objects are encrypted with keys of the store",
            advice="set s3.kmsKeyArn to use a key of your own",
        )
    main = S3ObjectStore(bucket(config), is_archived=_is_archived)
    observed = ObservedObjectStore(main, on_operation)
    retrying = RetryingObjectStore(observed, attempts_max=s3.attempts_max, random=random)

    async def check() -> None:
        await main.authenticate()
        create = (lambda: create_bucket(bucket(config))) if s3.create_bucket else None
        await probe_access(retrying, s3.namespace, create)
        await probe_guarantees(retrying, s3.namespace, random)

    limited = LimitedObjectStore(
        _with_replica(config, observed, on_operation),
        requests_max=s3.requests_max,
        # One for each WAL upload, and one for the health probe.
        reserved_count=min(config.storage.wal_uploads_max + 1, s3.requests_max // 2),
        is_urgent=_urgency(s3.namespace),
    )
    return RetryingObjectStore(limited, attempts_max=s3.attempts_max, random=random), check


def describe_objects(config: Config) -> str:
    """Where records are stored, for logs and DescribeLogDirs."""
    if config.s3.use_memory:
        return "memory"
    if config.s3.bucket:
        return f"s3://{config.s3.bucket}/{config.s3.namespace}"
    return str(Path(config.broker.data_dir) / object_keys.OBJECTS_DIRECTORY)


@asynccontextmanager
async def open_bucket(bucket: S3Bucket, *, attempts_max: int) -> AsyncIterator[ObjectStore]:
    """Open a bucket for tools and jobs; closed at the end of the block."""
    store = S3ObjectStore(bucket)
    try:
        await store.authenticate()
        yield RetryingObjectStore(
            store,
            attempts_max=attempts_max,
            random=Random(),  # noqa: S311 - jitter for retries, no security.
        )
    finally:
        await store.close()


def lifecycle(config: Config) -> BucketLifecycle | None:
    """The bucket's lifecycle rules, if Kafscale manages them."""
    if not config.s3.manage_lifecycle:
        return None
    return BucketLifecycle(bucket(config), config.s3.namespace)


def bucket(config: Config) -> S3Bucket:
    """The bucket that records are written to."""
    s3 = config.s3
    return S3Bucket(
        name=s3.bucket,
        region=s3.region,
        endpoint=s3.endpoint,
        path_style=s3.path_style,
        credential_source=s3.credential_source,
        access_key=s3.access_key,
        secret_key=s3.secret_key,
        session_token=s3.session_token,
        credentials_file=s3.credentials_file,
        profile=s3.profile,
        role_arn=s3.role_arn,
        sts_endpoint=s3.sts_endpoint,
        kms_key_arn=s3.kms_key_arn,
        server_side_encryption=s3.server_side_encryption,
        storage_class=s3.storage_class,
        part_bytes=s3.part_bytes,
        concurrency=s3.concurrency,
        idle_connections_max=s3.idle_connections_max,
        idle_timeout_ms=s3.idle_timeout_ms,
        connect_timeout_ms=s3.connect_timeout_ms,
        request_timeout_ms=s3.request_timeout_ms,
    )


def read_bucket(config: Config) -> S3Bucket:
    """The replica bucket that records are read from."""
    s3 = config.s3
    return replace(
        bucket(config),
        name=s3.read_bucket,
        region=s3.read_region or s3.region,
        endpoint=s3.read_endpoint or s3.endpoint,
        connect_timeout_ms=min(s3.connect_timeout_ms, REPLICA_TIMEOUT_MS_MAX),
        request_timeout_ms=min(s3.request_timeout_ms, REPLICA_TIMEOUT_MS_MAX),
    )


def _with_replica(
    config: Config, main: ObjectStore, on_operation: OperationObserver
) -> ObjectStore:
    if not config.s3.read_bucket:
        return main
    replica = S3ObjectStore(read_bucket(config))
    return ReplicaReadingObjectStore(
        main, ObservedObjectStore(replica, replica_observer(on_operation)), is_segment=_is_archived
    )


def _is_archived(key: str) -> bool:
    """Whether an object is long-lived and large."""
    return key.endswith(object_keys.SEGMENT_SUFFIX)


def _urgency(namespace: str) -> Callable[[str, str], bool]:
    probes = f"{namespace}/{object_keys.PROBE_DIRECTORY}/"

    def is_urgent(operation: str, key: str) -> bool:
        is_wal = operation == "put" and key.endswith(object_keys.WAL_SUFFIX)
        return is_wal or key.startswith(probes)

    return is_urgent


# --- probes -------------------------------------------------------------------------------------


async def probe_access(
    store: ObjectStore, namespace: str, create: Callable[[], Awaitable[None]] | None
) -> None:
    """List the namespace, which requires the bucket, its region and permissions.

    If the bucket does not exist and `create` is given, it is created.
    """
    try:
        await _list(store, namespace)
    except MissingBucketError:
        if create is None:
            raise
        await create()
        await _list(store, namespace)


async def probe_guarantees(store: ObjectStore, namespace: str, random: Random) -> None:
    """Write one key again, with conditions that are not met, and list it.

    Fencing and swaps depend on conditions: on a store that ignores them, two brokers could
    acknowledge records into the same log, or a former owner could overwrite a newer segment. New
    owners depend on listings that are complete: they would miss acknowledged records. The broker
    refuses to start with such a store.
    """
    directory = f"{namespace}/{object_keys.PROBE_DIRECTORY}/"
    key = f"{directory}{random.getrandbits(64):016x}"
    await store.put(key, [b"first"])
    defect = await _violated_condition(store, key, random) or await _missing_in_list(
        store, directory, key
    )
    try:
        await store.delete([key])
    except OperatingError:
        if defect is None:  # Otherwise the violation is the more important error.
            raise
    if defect is not None:
        raise ConfigError(defect)


async def _violated_condition(store: ObjectStore, key: str, random: Random) -> str | None:
    ignored = None
    with suppress(ObjectExistsError):
        await store.put(key, [b"second"])
    if bytes(await store.get(key)) != b"first":
        ignored = "If-None-Match"
    else:
        with suppress(ObjectChangedError):
            await store.replace(key, [b"third"], f'"{random.getrandbits(128):032x}"')
            ignored = "If-Match"
    if ignored is None:
        return None
    return (
        f"the object store ignores {ignored} on PUT and overwrites existing objects, so two"
        " brokers could overwrite each other's records; use a server version with conditional"
        " writes, or another store, such as S3"
    )


async def _missing_in_list(store: ObjectStore, directory: str, key: str) -> str | None:
    async for chunk in store.list(directory):
        if any(item.key == key for item in chunk):
            return None
    return (
        "the object store does not list an object that was just written, so the new owner of a"
        " partition could miss records; use a store with consistent listings, such as S3"
    )


async def _list(store: ObjectStore, namespace: str) -> None:
    async with aclosing(store.list(f"{namespace}/")) as chunks:  # type: ignore[type-var]
        async for _ in chunks:
            return
