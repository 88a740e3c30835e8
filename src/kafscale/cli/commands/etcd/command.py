"""`kafscale etcd`: back up and restore the metadata, and maintain etcd members."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; gRPC is slow to import.

from pathlib import Path
from typing import Annotated

import typer

from kafscale.admin.etcd.backups.snapshot_format import LATEST
from kafscale.cli.commands.config import load_config
from kafscale.cli.commands.etcd.access import LocationOptions, MemberOptions, config_with_etcd, run
from kafscale.cli.output import Output, OutputOption, print_result
from kafscale.text.formatting import parse_time

app = typer.Typer(
    no_args_is_help=True,
    help="Back up and restore the metadata in etcd, and maintain etcd members. The settings name"
    " the members (etcd.endpoints) and the bucket (s3.bucket); options override the bucket.",
)


@app.command()
def snapshot(
    *,
    retain: Annotated[
        int,
        typer.Option(
            "--retain",
            min=0,
            help="Number of snapshots to keep; older ones are deleted. 0 keeps all.",
        ),
    ] = 0,
    where: LocationOptions,
    output: OutputOption = Output.TABLE,
) -> None:
    """Take a snapshot, from a follower if possible, and store it in the bucket.

    Its checksum is verified before the upload; an interrupted upload is never listed.

    \b
    kafscale etcd snapshot
    kafscale etcd snapshot --bucket backups --prefix etcd/production --retain 168
    """
    from kafscale.admin.etcd.backups import listing
    from kafscale.cli.commands.etcd import tables
    from kafscale.cli.output import bytes_bar

    config = config_with_etcd()
    with bytes_bar("taking a snapshot") as progress:
        created = run(listing.take_snapshot(config, where.location(), retain, progress))
    print_result(created, output, tables.print_snapshot)


@app.command()
def snapshots(
    *,
    verify: Annotated[
        bool, typer.Option("--verify", help="Download each snapshot and compare checksums.")
    ] = False,
    where: LocationOptions,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the snapshots in the bucket, oldest first; exit with 1 if one is damaged.

    \b
    kafscale etcd snapshots
    kafscale etcd snapshots --prefix etcd-snapshots/default.production --verify
    kafscale etcd snapshots -o json | jq -r '.[-1].key'
    """
    from kafscale.admin.etcd.backups import listing
    from kafscale.cli.commands.etcd import tables as etcd_tables
    from kafscale.cli.output import bytes_bar

    with bytes_bar("reading snapshots") as progress:
        listed = run(
            listing.list_snapshots(
                load_config(), where.location(), verify=verify, progress=progress
            )
        )
    print_result(listed, output, etcd_tables.print_snapshots)
    if any(each.is_damaged for each in listed):
        raise typer.Exit(1)


@app.command()
def restore(
    *,
    data_dir: Annotated[
        Path, typer.Option("--data-dir", metavar="DIRECTORY", help="Data directory of etcd.")
    ],
    snapshot_: Annotated[
        str, typer.Option("--snapshot", metavar="KEY|latest|FILE", help="Snapshot to restore.")
    ] = LATEST,
    member: MemberOptions,
    if_empty: Annotated[
        bool, typer.Option("--if-empty", help="Do nothing if the directory contains data.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Move existing data aside.")] = False,
    where: LocationOptions,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create the data directory of a member from a snapshot, after verifying its checksum.

    Stop all brokers and all members first, and run this once for each member, with the same
    snapshot. It needs etcdutl, which comes with etcd. Brokers detect restored metadata when they
    start, and repair it from the objects in the bucket.

    \b
    kafscale etcd restore --data-dir /var/lib/etcd
    kafscale etcd restore --data-dir /var/lib/etcd --snapshot backup.db --force
    kafscale etcd restore --data-dir /var/lib/etcd --name etcd-0 \\
        --snapshot etcd-snapshots/default.production/20260131T120000Z-48151.db \\
        --initial-advertise-peer-urls http://etcd-0:2380 \\
        --initial-cluster etcd-0=http://etcd-0:2380,etcd-1=http://etcd-1:2380
    """
    from kafscale.cli.commands.etcd import restore as etcd_restore
    from kafscale.cli.commands.etcd import tables as etcd_tables
    from kafscale.cli.output import bytes_bar
    from kafscale.operator.etcd.restore import has_data

    if if_empty and force:
        raise typer.BadParameter("--if-empty and --force exclude each other")
    if if_empty and has_data(data_dir):
        result = etcd_restore.skipped_result(data_dir)
    else:
        with bytes_bar("fetching the snapshot") as progress:
            result = etcd_restore.restore(
                snapshot_,
                data_dir,
                member.identity(),
                where.location(),
                force=force,
                progress=progress,
            )
    print_result(result, output, etcd_tables.print_restored)


@app.command()
def restored(
    snapshot_: Annotated[
        str,
        typer.Option(
            "--snapshot",
            metavar="KEY|FILE",
            help="The snapshot that was restored; omit it if etcd is empty.",
            show_default=False,
        ),
    ] = "",
    taken_at: Annotated[
        str,
        typer.Option(
            "--taken-at",
            metavar="TIME",
            help="Time of the snapshot, such as 2026-01-31T12:00:00Z; by default from its name.",
        ),
    ] = "",
    cluster_id: Annotated[
        str,
        typer.Option(
            "--cluster-id",
            metavar="ID",
            help="Take over the records of this other cluster, which must not run any more.",
            show_default=False,
        ),
    ] = "",
) -> None:
    """Mark the metadata as restored, if etcd was not restored by `kafscale etcd restore`.

    Run this after etcd has started and before any broker starts. Without a snapshot, the topics are
    rebuilt from the bucket; consumer groups, users and ACLs are lost. For a single broker with a
    bucket and without etcd, this marks the metadata in its data directory.

    \b
    kafscale etcd restored
    kafscale etcd restored --snapshot backup.db --taken-at 2026-01-31T12:00:00Z
    """
    from kafscale.admin.etcd.backups import listing
    from kafscale.admin.etcd.backups import snapshot_format as snapshot_keys

    if taken_at:
        try:
            taken_at_ms = parse_time(taken_at)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--taken-at") from None
    elif name := snapshot_keys.parse(snapshot_):
        taken_at_ms = name.taken_at_ms
    elif not snapshot_:
        taken_at_ms = 0
    else:
        raise typer.BadParameter(
            "name the time of the snapshot with --taken-at: it is not part of its name"
        )
    config = load_config()
    if not config.s3.bucket:
        config = config_with_etcd()  # A broker with local files restores its metadata itself.
    if not config.etcd.endpoints:
        Path(config.broker.data_dir).mkdir(parents=True, exist_ok=True)
    run(listing.mark_store_restored(config, snapshot_, taken_at_ms, cluster_id))
    typer.echo("marked as restored: brokers repair the metadata from the bucket when they start")


@app.command()
def status(output: OutputOption = Output.TABLE) -> None:
    """Show the members: roles, versions, database sizes, alarms and problems.

    \b
    kafscale etcd status
    kafscale etcd status -o json | jq '.members[] | {name, role, databaseBytes}'
    """
    from kafscale.admin.etcd import members as etcd_admin
    from kafscale.cli.commands.etcd import tables as etcd_tables

    members = run(etcd_admin.status(config_with_etcd().etcd))
    print_result(members, output, etcd_tables.print_status)


@app.command()
def defragment(output: OutputOption = Output.TABLE) -> None:
    """Defragment all members, one at a time and the leader last, to free disk space.

    A member serves no requests meanwhile; the command fails if a member is unreachable.

    \b
    kafscale etcd defragment
    """
    from kafscale.admin.etcd import members as etcd_admin
    from kafscale.cli.commands.etcd import tables as etcd_tables
    from kafscale.cli.output import progress_bar

    with progress_bar("defragmenting members") as progress:
        freed = run(etcd_admin.defragment(config_with_etcd().etcd, progress))
    print_result(freed, output, etcd_tables.print_freed)
