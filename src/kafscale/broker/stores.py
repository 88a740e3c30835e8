"""The two stores of a broker, built from its settings: objects and metadata.

The law: a store that is named is used, or the broker does not start. Nothing falls back to memory,
and a store that cannot be reached is waited for as long as `startupTimeoutSec` says, then given up
with an error that names it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import TypeVar

from kafscale.config import Config
from kafscale.errors import ConfigError, OperatingError, StoreUnavailableError
from kafscale.metadata.sqlite import SqliteStore
from kafscale.metadata.store import MetadataStore
from kafscale.observability.logging import get_logger
from kafscale.storage import layout
from kafscale.storage.objects.base import ObjectStore
from kafscale.storage.objects.local import LocalObjectStore
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.objects.observed import ObservedObjectStore, OperationObserver
from kafscale.storage.objects.probe import probe_create_only
from kafscale.storage.objects.replica import ReplicaReadingObjectStore
from kafscale.storage.objects.retry import RetryingObjectStore
from kafscale.storage.objects.s3 import S3Bucket, S3ObjectStore

log = get_logger(__name__)

OBJECTS_DIRECTORY = "objects"
METADATA_FILE = "metadata.sqlite"
RETRY_SECONDS = 0.5

Result = TypeVar("Result")


def is_remote(config: Config) -> bool:
    """Whether every request to the object store costs time and money."""
    return bool(config.s3.bucket) and not config.s3.use_memory


def describe_objects(config: Config) -> str:
    """Where records are, in words for people."""
    if config.s3.use_memory:
        return "memory"
    if config.s3.bucket:
        return f"s3://{config.s3.bucket}/{config.s3.namespace}"
    return str(Path(config.broker.data_dir) / OBJECTS_DIRECTORY)


async def open_objects(
    config: Config, on_operation: OperationObserver, clock: Callable[[], int], random: Random
) -> ObjectStore:
    """The object store, proven to keep what fencing relies on."""
    store = _observed(_objects(config, clock), config, on_operation, random)
    try:
        await _reached(
            config, f"object storage ({describe_objects(config)})",
            lambda: probe_create_only(store, config.s3.namespace, random),
        )  # fmt: skip
    except BaseException:
        await store.close()
        raise
    return store


async def open_metadata(config: Config, clock: Callable[[], int]) -> MetadataStore:
    """The metadata store."""
    if config.etcd.endpoints:
        raise ConfigError("etcd is not supported yet; leave etcd.endpoints empty")
    directory = _data_directory(config)
    return await SqliteStore.open(
        directory / METADATA_FILE, clock, fsync=config.storage.local_fsync
    )


def _objects(config: Config, clock: Callable[[], int]) -> ObjectStore:
    if config.s3.use_memory:
        log.warning("records are kept in memory and lost with this process")
        return MemoryObjectStore(clock)
    if not config.s3.bucket:
        directory = _data_directory(config) / OBJECTS_DIRECTORY
        return LocalObjectStore(
            directory,
            fsync=config.storage.local_fsync,
            recycles=lambda key: key.endswith(layout.WAL_SUFFIX),
        )
    main = S3ObjectStore(_bucket(config))
    if not config.s3.read_bucket:
        return main
    return ReplicaReadingObjectStore(main, S3ObjectStore(_read_bucket(config)))


def _observed(
    store: ObjectStore, config: Config, on_operation: OperationObserver, random: Random
) -> ObjectStore:
    observed = ObservedObjectStore(store, on_operation)
    if not is_remote(config):
        return observed
    return RetryingObjectStore(observed, retries_max=config.s3.retries_max, random=random)


def _bucket(config: Config) -> S3Bucket:
    s3 = config.s3
    return S3Bucket(
        name=s3.bucket, region=s3.region, endpoint=s3.endpoint, path_style=s3.path_style,
        credential_source=s3.credential_source, role_arn=s3.role_arn, access_key=s3.access_key,
        secret_key=s3.secret_key, session_token=s3.session_token, kms_key_arn=s3.kms_key_arn,
        part_bytes=s3.part_bytes, concurrency=s3.concurrency,
    )  # fmt: skip


def _read_bucket(config: Config) -> S3Bucket:
    s3 = config.s3
    return S3Bucket(
        name=s3.read_bucket, region=s3.read_region or s3.region,
        endpoint=s3.read_endpoint or s3.endpoint, path_style=s3.path_style,
        credential_source=s3.credential_source, role_arn=s3.role_arn, access_key=s3.access_key,
        secret_key=s3.secret_key, session_token=s3.session_token,
    )  # fmt: skip


def _data_directory(config: Config) -> Path:
    directory = Path(config.broker.data_dir)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"the data directory {directory} cannot be made ({error.strerror});"
            " set KAFSCALE_DATA_DIR to one that can"
        ) from None
    return directory


async def _reached(config: Config, name: str, attempt: Callable[[], Awaitable[Result]]) -> Result:
    """Try until the store answers, or until a starting broker has waited for long enough."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + config.broker.startup_timeout_sec
    reason = "it does not answer"
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                return await attempt()
        except StoreUnavailableError as error:
            reason = str(error)
        except OperatingError as error:
            raise OperatingError(f"{name} cannot be used: {error}") from None
        except TimeoutError:
            pass  # One attempt, with its retries, may take longer than there is time.
        if loop.time() + RETRY_SECONDS > deadline:
            raise StoreUnavailableError(f"{name} cannot be reached: {reason}")
        log.warning("waiting for a store", store=name, error=reason)
        await asyncio.sleep(RETRY_SECONDS)
