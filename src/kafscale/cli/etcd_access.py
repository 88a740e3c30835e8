"""How `kafscale etcd` reaches an etcd and its snapshots: by the settings and by options.

The law: what an option says wins over the settings. Snapshots are objects of the standard class,
whatever segments are.
"""

# ruff: noqa: PLC0415 - gRPC and the client of S3 are slow to load.

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from kafscale.cli.config import effective
from kafscale.cli.wording import clock
from kafscale.config.stores import Etcd
from kafscale.errors import KafscaleError

if TYPE_CHECKING:
    from kafscale.operator.etcd.snapshots import Snapshots

Result = TypeVar("Result")

PREFIX: Final = "etcd-snapshots"

BucketOption = Annotated[
    str,
    typer.Option(
        "--bucket",
        metavar="BUCKET",
        help="The bucket of the snapshots; by default s3.bucket.",
        show_default=False,
    ),
]
PrefixOption = Annotated[
    str,
    typer.Option(
        "--prefix",
        metavar="PREFIX",
        help="What their keys begin with, such as etcd-snapshots/NAMESPACE.CLUSTER for those of the"
        " operator; by default etcd-snapshots/ and s3.namespace.",
        show_default=False,
    ),
]
RegionOption = Annotated[
    str,
    typer.Option(
        "--region",
        metavar="REGION",
        help="The region of the bucket; by default s3.region.",
        show_default=False,
    ),
]
EndpointOption = Annotated[
    str,
    typer.Option(
        "--endpoint",
        metavar="URL",
        help="An S3-compatible server, such as MinIO; by default s3.endpoint.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Place:
    """Where snapshots are, as far as options say; the settings say the rest."""

    bucket: str = ""
    prefix: str = ""
    region: str = ""
    endpoint: str = ""


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Wait for something asynchronous, whose errors say what is worth saying."""
    from kafscale.observability import logging

    logging.configure("error", "text")
    return asyncio.run(work)


def etcd_settings() -> Etcd:
    """The etcd of the settings, which has to be one."""
    settings = effective().etcd
    if not settings.endpoints:
        raise KafscaleError(
            "no etcd is named in the settings: set KAFSCALE_ETCD_ENDPOINTS, such as etcd-0:2379"
        )
    return settings


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator["Snapshots"]:
    """The snapshots in a bucket, as long as the block lasts."""
    from kafscale.broker import buckets
    from kafscale.operator.etcd.snapshots import Snapshots
    from kafscale.storage.objects import RetryingObjectStore, S3ObjectStore
    from kafscale.storage.objects.bucket import STANDARD

    config = effective()
    if not (place.bucket or config.s3.bucket):
        raise KafscaleError("no bucket is named: use --bucket, or set KAFSCALE_S3_BUCKET")
    set_up = buckets.bucket(config)
    bucket = replace(
        set_up,
        name=place.bucket or set_up.name,
        region=place.region or set_up.region,
        endpoint=place.endpoint or set_up.endpoint,
        # Servers that are named so rarely have a name for every bucket.
        path_style=set_up.path_style or bool(place.endpoint),
        storage_class=STANDARD,
    )
    store = S3ObjectStore(bucket)
    try:
        await store.authenticate()
        patient = RetryingObjectStore(
            store,
            retries_max=config.s3.retries_max,
            random=Random(),  # noqa: S311 - spreads requests, protects nothing.
        )
        yield Snapshots(patient, place.prefix or f"{PREFIX}/{config.s3.namespace}", clock)
    finally:
        await store.close()
