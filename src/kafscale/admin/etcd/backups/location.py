"""Where snapshots of etcd are: as somebody says, and as the settings say for the rest.

The law: what is said wins over the settings. Snapshots are objects of the standard class, whatever
segments are.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from kafscale.admin.etcd.backups.store import Snapshots
from kafscale.config import Config
from kafscale.errors import KafscaleError
from kafscale.storage.objects import factory
from kafscale.storage.objects.s3.bucket_config import STANDARD
from kafscale.text.formatting import clock

PREFIX: Final = "etcd-snapshots"


@dataclass(frozen=True)
class Place:
    """Where snapshots are, as far as that is said; the settings say the rest."""

    bucket: str = ""
    prefix: str = ""
    region: str = ""
    endpoint: str = ""


@asynccontextmanager
async def opened(config: Config, place: Place) -> AsyncIterator[Snapshots]:
    """The snapshots in a bucket, as long as the block lasts."""
    if not (place.bucket or config.s3.bucket):
        raise KafscaleError("no bucket is named: use --bucket, or set KAFSCALE_S3_BUCKET")
    set_up = factory.bucket(config)
    bucket = replace(
        set_up,
        name=place.bucket or set_up.name,
        region=place.region or set_up.region,
        endpoint=place.endpoint or set_up.endpoint,
        # Servers that are named so rarely have a name for every bucket.
        path_style=set_up.path_style or bool(place.endpoint),
        storage_class=STANDARD,
    )
    async with factory.open_bucket(bucket, retries_max=config.s3.retries_max) as store:
        yield Snapshots(store, place.prefix or f"{PREFIX}/{config.s3.namespace}", clock)
