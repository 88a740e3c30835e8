"""What `kafscale etcd restore` takes about the member that it makes, in etcd's own words."""

from typing import Annotated

import typer

NameOption = Annotated[str, typer.Option("--name", help="The name of the member.")]
PeerUrlsOption = Annotated[
    str, typer.Option("--initial-advertise-peer-urls", help="Where others will find the member.")
]
InitialClusterOption = Annotated[
    str,
    typer.Option(
        "--initial-cluster",
        metavar="NAME=URL,...",
        help="All members; by default there is only this one.",
        show_default=False,
    ),
]
TokenOption = Annotated[
    str, typer.Option("--initial-cluster-token", help="What tells the cluster from others.")
]
