"""Opens the object store and the metadata store of a broker.

Invariant: a configured store is used, or the broker does not start. Nothing falls back to memory.
The broker retries an unreachable store for `startupTimeoutSec`, then exits with an error that names
it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar

from kafscale.config import Config
from kafscale.errors import ConfigError, OperatingError, StoreUnavailableError
from kafscale.metadata.store.base import MetadataStore
from kafscale.metadata.store.etcd import EtcdStore
from kafscale.metadata.store.sqlite.store import METADATA_FILE, SqliteStore
from kafscale.observability.logging import get_logger
from kafscale.storage.formats import object_keys
from kafscale.storage.objects import factory
from kafscale.storage.objects.factory import probe_guarantees
from kafscale.storage.objects.layers.observed import ObservedObjectStore, OperationObserver
from kafscale.storage.objects.local.disk_reserve import DiskReserve
from kafscale.storage.objects.local.store import LocalObjectStore
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.objects.store import ObjectStore

logger = get_logger(__name__)

RESERVE_FILE = "reserve"
RETRY_SECONDS = 0.5

Result = TypeVar("Result")


def is_remote(config: Config) -> bool:
    """Whether objects are in a bucket, where every request costs time and money."""
    return bool(config.s3.bucket) and not config.s3.use_memory


async def open_objects(
    config: Config, on_operation: OperationObserver, clock: Callable[[], int], random: Random
) -> ObjectStore:
    """Open the object store, after a probe of what fencing and takeovers rely on."""
    store: ObjectStore
    if is_remote(config):
        store, probe = factory.create_store(config, on_operation, random)
    else:
        store = ObservedObjectStore(_local_objects(config, clock), on_operation)
        probe = partial(probe_guarantees, store, config.s3.namespace, random)
    try:
        await _retry(
            config, f"object storage ({factory.describe_objects(config)})", "s3.endpoint", probe
        )
    except BaseException:
        await store.close()
        raise
    return store


async def open_metadata(config: Config, clock: Callable[[], int]) -> MetadataStore:
    """Open the metadata store: the cluster's etcd, or a SQLite file for a single broker."""
    if config.etcd.endpoints:
        return await _open_etcd(config)
    directory = _data_directory(config)
    return await SqliteStore.open(
        directory / METADATA_FILE,
        clock,
        fsync=config.storage.local_fsync,
        make_space=DiskReserve(directory / RESERVE_FILE).release,
    )


async def _open_etcd(config: Config) -> MetadataStore:
    store = EtcdStore(config.etcd)
    try:
        name = f"etcd ({', '.join(config.etcd.endpoints)})"
        await _retry(config, name, "etcd.endpoints", store.check)
    except BaseException:
        await store.close()
        raise
    return store


def _local_objects(config: Config, clock: Callable[[], int]) -> ObjectStore:
    """An object store in memory or in local files."""
    if config.s3.use_memory:
        logger.warning("records are kept in memory only and lost when this process ends")
        return MemoryObjectStore(clock)
    directory = _data_directory(config)
    return LocalObjectStore(
        directory / object_keys.OBJECTS_DIRECTORY,
        fsync=config.storage.local_fsync,
        # Retention and DeleteRecords write the start of a log before they delete.
        reserve=DiskReserve(directory / RESERVE_FILE, may_use=_is_log_start),
    )


def _is_log_start(key: str) -> bool:
    return key.endswith(f"/{object_keys.LOG_START_NAME}")


def _data_directory(config: Config) -> Path:
    directory = Path(config.broker.data_dir)
    try:
        # It contains records, and keys of SCRAM users in the metadata.
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot create the data directory {directory} ({error.strerror});"
            " set KAFSCALE_DATA_DIR to a writable path"
        ) from None
    return directory


async def _retry(
    config: Config, name: str, setting: str, attempt: Callable[[], Awaitable[Result]]
) -> Result:
    """Retry until the store responds, or until the startup timeout.

    `setting` names the address of the store.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + config.broker.startup_timeout_sec
    reason = f"it does not respond; check {setting}, and that this machine may connect to it"
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                return await attempt()
        except StoreUnavailableError as error:
            reason = str(error)
        except OperatingError as error:
            raise OperatingError(f"{name} cannot be used: {error}") from None
        except TimeoutError:
            pass  # One attempt, with its own retries, may exceed the deadline.
        if loop.time() + RETRY_SECONDS > deadline:
            raise StoreUnavailableError(f"{name} cannot be reached: {reason}")
        logger.warning("waiting for a store", store=name, error=reason)
        await asyncio.sleep(RETRY_SECONDS)
