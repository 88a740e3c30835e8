"""`kafscale etcd`: back up the metadata, restore it, and look after the members that keep it."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; gRPC is slow to load.

from pathlib import Path
from typing import Annotated

import typer

from kafscale.admin.etcd.backups.object_keys import LATEST
from kafscale.cli.commands.config import effective
from kafscale.cli.commands.etcd.access import (
    BucketOption,
    EndpointOption,
    PrefixOption,
    RegionOption,
    run,
    with_etcd,
)
from kafscale.cli.commands.etcd.etcd_options import (
    InitialClusterOption,
    NameOption,
    PeerUrlsOption,
    TokenOption,
)
from kafscale.cli.output import Output, OutputOption, print_data
from kafscale.text.formatting import parse_time

app = typer.Typer(
    no_args_is_help=True,
    help="Back up the metadata in etcd, restore it, and look after etcd's members. The members are"
    " those of the settings (etcd.endpoints), and so is the bucket (s3.bucket), unless options"
    " name another.",
)


@app.command()
def snapshot(
    *,
    retain: Annotated[
        int,
        typer.Option("--retain", min=0, help="Then keep only so many, the newest; 0 keeps all."),
    ] = 0,
    bucket: BucketOption = "",
    prefix: PrefixOption = "",
    region: RegionOption = "",
    endpoint: EndpointOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Take a snapshot now, from a member that has little to do, and store it in the bucket.

    It counts once it was proven to be whole; whoever is killed before leaves nothing that counts.

    \b
    kafscale etcd snapshot
    kafscale etcd snapshot --bucket backups --prefix etcd/production --retain 168
    """
    from kafscale.admin.etcd.backups import listing
    from kafscale.admin.etcd.backups.location import SnapshotLocation
    from kafscale.cli.commands.etcd import tables
    from kafscale.cli.progress import bytes_bar

    config = with_etcd()
    place = SnapshotLocation(bucket, prefix, region, endpoint)
    with bytes_bar("taking a snapshot") as progress:
        taken = run(listing.take_snapshot(config, place, retain, progress))
    if output is Output.TABLE:
        tables.print_taken(taken)
    else:
        print_data(taken, output)


@app.command()
def snapshots(
    *,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read each to the last byte, and compare checksums.")
    ] = False,
    bucket: BucketOption = "",
    prefix: PrefixOption = "",
    region: RegionOption = "",
    endpoint: EndpointOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """List the snapshots in the bucket, the oldest first; exits with 1 if one is damaged.

    \b
    kafscale etcd snapshots
    kafscale etcd snapshots --prefix etcd-snapshots/default.production --verify
    kafscale etcd snapshots -o json | jq -r '.[-1].key'
    """
    from kafscale.admin.etcd.backups import listing
    from kafscale.admin.etcd.backups.location import SnapshotLocation
    from kafscale.cli.commands.etcd import tables as etcd_tables
    from kafscale.cli.progress import bytes_bar

    place = SnapshotLocation(bucket, prefix, region, endpoint)
    with bytes_bar("reading snapshots") as progress:
        found = run(listing.list_snapshots(effective(), place, verify=verify, progress=progress))
    if output is Output.TABLE:
        etcd_tables.print_snapshots(found)
    else:
        print_data(found, output)
    if any(each.is_damaged for each in found):
        raise typer.Exit(1)


@app.command()
def restore(
    *,
    data_dir: Annotated[
        Path, typer.Option("--data-dir", metavar="DIRECTORY", help="The data directory of etcd.")
    ],
    wanted: Annotated[
        str, typer.Option("--snapshot", metavar="KEY|latest|FILE", help="What to restore.")
    ] = LATEST,
    name: NameOption = "default",
    peer_urls: PeerUrlsOption = "http://localhost:2380",
    initial_cluster: InitialClusterOption = "",
    token: TokenOption = "etcd-cluster",  # noqa: S107 - a name, not a secret.
    if_empty: Annotated[
        bool, typer.Option("--if-empty", help="Do nothing if the directory has data.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Move the data that is there aside.")
    ] = False,
    bucket: BucketOption = "",
    prefix: PrefixOption = "",
    region: RegionOption = "",
    endpoint: EndpointOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Make the data directory of a member from a snapshot, whose checksums have to hold.

    Stop all brokers and all members first, and run it once for each member, with the same snapshot.
    It needs etcdutl, which comes with etcd. The brokers find out by themselves that they are on
    restored metadata, and bring it up to date with what is in the bucket.

    \b
    kafscale etcd restore --data-dir /var/lib/etcd
    kafscale etcd restore --data-dir /var/lib/etcd --snapshot backup.db --force
    kafscale etcd restore --data-dir /var/lib/etcd --name etcd-0 \\
        --snapshot etcd-snapshots/default.production/20260131T120000Z-48151.db \\
        --initial-advertise-peer-urls http://etcd-0:2380 \\
        --initial-cluster etcd-0=http://etcd-0:2380,etcd-1=http://etcd-1:2380
    """
    from kafscale.admin.etcd.backups.location import SnapshotLocation
    from kafscale.cli.commands.etcd import restore as etcd_restore
    from kafscale.cli.commands.etcd import tables as etcd_tables
    from kafscale.cli.progress import bytes_bar
    from kafscale.operator.etcd.restore import Identity, has_data

    if if_empty and force:
        raise typer.BadParameter("--if-empty and --force exclude each other")
    identity = Identity(
        name=name,
        advertise_peer_urls=peer_urls,
        initial_cluster=initial_cluster or f"{name}={peer_urls}",
        initial_cluster_token=token,
    )
    if if_empty and has_data(data_dir):
        result = etcd_restore.left_alone(data_dir)
    else:
        place = SnapshotLocation(bucket, prefix, region, endpoint)
        with bytes_bar("fetching the snapshot") as progress:
            result = etcd_restore.restore(
                wanted, data_dir, identity, place, force=force, progress=progress
            )
    if output is Output.TABLE:
        etcd_tables.print_restored(result)
    else:
        print_data(result, output)


@app.command()
def restored(
    snapshot_: Annotated[
        str, typer.Option("--snapshot", metavar="KEY|FILE", help="What was restored.")
    ],
    taken_at: Annotated[
        str,
        typer.Option(
            "--taken-at",
            metavar="TIME",
            help="When it was taken, such as 2026-01-31T12:00:00Z; by default its name tells.",
        ),
    ] = "",
) -> None:
    """Tell brokers that etcd was restored in another way than by `kafscale etcd restore`.

    Say it when etcd runs again, and before any broker does.

    \b
    kafscale etcd restored --snapshot backup.db --taken-at 2026-01-31T12:00:00Z
    """
    from kafscale.admin.etcd.backups import listing
    from kafscale.admin.etcd.backups import object_keys as snapshot_keys

    if taken_at:
        try:
            taken_at_ms = parse_time(taken_at)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--taken-at") from None
    elif name := snapshot_keys.parse(snapshot_):
        taken_at_ms = name.taken_at_ms
    else:
        raise typer.BadParameter("say when it was taken with --taken-at: its name does not tell")
    run(listing.mark_store_restored(with_etcd(), snapshot_, taken_at_ms))
    typer.echo("marked: brokers bring the metadata up to date with the bucket when they start")


@app.command()
def status(output: OutputOption = Output.TABLE) -> None:
    """Show all members, who leads, how large their databases are, and what is wrong.

    \b
    kafscale etcd status
    kafscale etcd status -o json | jq '.members[] | {name, role, databaseBytes}'
    """
    from kafscale.admin.etcd import members as etcd_admin
    from kafscale.cli.commands.etcd import tables as etcd_tables

    found = run(etcd_admin.status(with_etcd().etcd))
    if output is Output.TABLE:
        etcd_tables.print_status(found)
    else:
        print_data(found, output)


@app.command()
def defragment(output: OutputOption = Output.TABLE) -> None:
    """Have members give free space back to the disk, one after the other and the leader last.

    A member answers nobody meanwhile, so nothing is begun unless all of them are in reach.

    \b
    kafscale etcd defragment
    """
    from kafscale.admin.etcd import members as etcd_admin
    from kafscale.cli.commands.etcd import tables as etcd_tables
    from kafscale.cli.progress import progress_bar

    with progress_bar("defragmenting members") as progress:
        freed = run(etcd_admin.defragment(with_etcd().etcd, progress))
    if output is Output.TABLE:
        etcd_tables.print_freed(freed)
    else:
        print_data(freed, output)
