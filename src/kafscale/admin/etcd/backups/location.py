"""The bucket and prefix of etcd snapshots, from options and settings.

Options override settings. Snapshots always use the standard storage class, whatever segments use.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from kafscale.admin.etcd.backups.store import SnapshotStore
from kafscale.aio.clock import clock
from kafscale.config import Config
from kafscale.errors import KafscaleError
from kafscale.storage.objects import factory
from kafscale.storage.objects.s3.bucket_config import STANDARD

PREFIX: Final = "etcd-snapshots"


@dataclass(frozen=True)
class SnapshotLocation:
    """Where snapshots are; empty fields are taken from the settings."""

    bucket: str = ""
    prefix: str = ""
    region: str = ""
    endpoint: str = ""


@asynccontextmanager
async def open_snapshots(
    config: Config, location: SnapshotLocation
) -> AsyncIterator[SnapshotStore]:
    """Open the snapshot store for the duration of the block."""
    if not (location.bucket or config.s3.bucket):
        raise KafscaleError("no bucket is set: use --bucket or KAFSCALE_S3_BUCKET")
    configured = factory.bucket(config)
    bucket = replace(
        configured,
        name=location.bucket or configured.name,
        region=location.region or configured.region,
        endpoint=location.endpoint or configured.endpoint,
        # Servers with a custom endpoint rarely support virtual-hosted bucket names.
        path_style=configured.path_style or bool(location.endpoint),
        storage_class=STANDARD,
    )
    async with factory.open_bucket(bucket, retries_max=config.s3.retries_max) as store:
        yield SnapshotStore(store, location.prefix or f"{PREFIX}/{config.s3.namespace}", clock)
