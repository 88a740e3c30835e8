"""Options of `kafscale etcd`, and access to etcd and its snapshots by the settings."""

# ruff: noqa: PLC0415 - gRPC and the S3 client are slow to import.

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from kafscale.cli.commands.config import load_config
from kafscale.config import Config
from kafscale.errors import KafscaleError

if TYPE_CHECKING:
    from kafscale.admin.etcd.backups.listing import SnapshotLocation
    from kafscale.operator.etcd.restore import Identity

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class LocationOptions:
    """Where snapshots are."""

    bucket: Annotated[
        str,
        typer.Option(
            "--bucket",
            metavar="BUCKET",
            help="Bucket of the snapshots; by default s3.bucket.",
            show_default=False,
        ),
    ] = ""
    prefix: Annotated[
        str,
        typer.Option(
            "--prefix",
            metavar="PREFIX",
            help="Key prefix of the snapshots, such as etcd-snapshots/NAMESPACE.CLUSTER for those"
            " of the operator; by default etcd-snapshots/ and s3.namespace.",
            show_default=False,
        ),
    ] = ""
    region: Annotated[
        str,
        typer.Option(
            "--region",
            metavar="REGION",
            help="Region of the bucket; by default s3.region.",
            show_default=False,
        ),
    ] = ""
    endpoint: Annotated[
        str,
        typer.Option(
            "--endpoint",
            metavar="URL",
            help="URL of an S3-compatible server, such as MinIO; by default s3.endpoint.",
            show_default=False,
        ),
    ] = ""

    def location(self) -> "SnapshotLocation":
        from kafscale.admin.etcd.backups.listing import SnapshotLocation

        return SnapshotLocation(self.bucket, self.prefix, self.region, self.endpoint)


@dataclass(frozen=True, kw_only=True)
class MemberOptions:
    """The identity of a member, by the options of etcd."""

    name: Annotated[str, typer.Option("--name", help="Name of the member.")] = "default"
    peer_urls: Annotated[
        str, typer.Option("--initial-advertise-peer-urls", help="Peer URLs of the member.")
    ] = "http://localhost:2380"
    initial_cluster: Annotated[
        str,
        typer.Option(
            "--initial-cluster",
            metavar="NAME=URL,...",
            help="All members and their peer URLs; by default only this member.",
            show_default=False,
        ),
    ] = ""
    token: Annotated[
        str, typer.Option("--initial-cluster-token", help="Token that is unique to the cluster.")
    ] = "etcd-cluster"  # noqa: S105 - a name, not a secret.

    def identity(self) -> "Identity":
        from kafscale.operator.etcd.restore import Identity

        return Identity(
            name=self.name,
            advertise_peer_urls=self.peer_urls,
            initial_cluster=self.initial_cluster or f"{self.name}={self.peer_urls}",
            initial_cluster_token=self.token,
        )


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine; only errors are logged."""
    from kafscale.observability import logging

    logging.configure("error", "text")
    return asyncio.run(work)


def config_with_etcd() -> Config:
    """Load the settings; raise an error if they have no etcd endpoints."""
    config = load_config()
    if not config.etcd.endpoints:
        raise KafscaleError(
            "no etcd endpoints are configured: set KAFSCALE_ETCD_ENDPOINTS, such as etcd-0:2379"
        )
    return config
