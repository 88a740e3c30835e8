"""The two stores of a broker, built from its settings: objects and metadata.

The law: a store that is named is used, or the broker does not start. Nothing falls back to memory,
and a store that cannot be reached is waited for as long as `startupTimeoutSec` says, then given up
with an error that names it.
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
from kafscale.metadata.store.sqlite.store import SqliteStore
from kafscale.observability.logging import get_logger
from kafscale.storage.formats import object_keys
from kafscale.storage.objects import factory
from kafscale.storage.objects.conditional_put_probe import probe_create_only
from kafscale.storage.objects.layers.observed import ObservedObjectStore, OperationObserver
from kafscale.storage.objects.local.store import LocalObjectStore
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.objects.store import ObjectStore

log = get_logger(__name__)

METADATA_FILE = "metadata.sqlite"
RETRY_SECONDS = 0.5

Result = TypeVar("Result")


def is_remote(config: Config) -> bool:
    """Whether every request to the object store costs time and money."""
    return bool(config.s3.bucket) and not config.s3.use_memory


async def open_objects(
    config: Config, on_operation: OperationObserver, clock: Callable[[], int], random: Random
) -> ObjectStore:
    """The object store, proven to keep what fencing relies on."""
    store: ObjectStore
    if is_remote(config):
        store, prove = factory.create_store(config, on_operation, random)
    else:
        store = ObservedObjectStore(_objects(config, clock), on_operation)
        prove = partial(probe_create_only, store, config.s3.namespace, random)
    try:
        await _reached(config, f"object storage ({factory.describe_objects(config)})", prove)
    except BaseException:
        await store.close()
        raise
    return store


async def open_metadata(config: Config, clock: Callable[[], int]) -> MetadataStore:
    """The metadata store: the cluster's etcd, or a file for one broker alone."""
    if config.etcd.endpoints:
        return await _open_etcd(config)
    directory = _data_directory(config)
    return await SqliteStore.open(
        directory / METADATA_FILE, clock, fsync=config.storage.local_fsync
    )


async def _open_etcd(config: Config) -> MetadataStore:
    store = EtcdStore(config.etcd)
    try:
        await _reached(config, f"etcd ({', '.join(config.etcd.endpoints)})", store.check)
    except BaseException:
        await store.close()
        raise
    return store


def _objects(config: Config, clock: Callable[[], int]) -> ObjectStore:
    """An object store on this machine."""
    if config.s3.use_memory:
        log.warning("records are kept in memory and lost with this process")
        return MemoryObjectStore(clock)
    return LocalObjectStore(
        _data_directory(config) / object_keys.OBJECTS_DIRECTORY,
        fsync=config.storage.local_fsync,
        recycles=lambda key: key.endswith(object_keys.WAL_SUFFIX),
    )


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
