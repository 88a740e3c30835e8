"""How `kafscale etcd` reaches an etcd and its snapshots: by the settings and by options."""

# ruff: noqa: PLC0415 - gRPC and the client of S3 are slow to load.

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any, TypeVar

import typer

from kafscale.cli.commands.config import effective
from kafscale.config import Config
from kafscale.errors import KafscaleError

Result = TypeVar("Result")

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


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Wait for something asynchronous, whose errors say what is worth saying."""
    from kafscale.observability import logging

    logging.configure("error", "text")
    return asyncio.run(work)


def with_etcd() -> Config:
    """The settings, which have to name an etcd."""
    config = effective()
    if not config.etcd.endpoints:
        raise KafscaleError(
            "no etcd is named in the settings: set KAFSCALE_ETCD_ENDPOINTS, such as etcd-0:2379"
        )
    return config
