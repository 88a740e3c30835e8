"""`kafscale spark lake`: write topics to lake tables, exactly once."""

# ruff: noqa: B006, D301, PLC0415 - typer copies lists; \b keeps the lines of examples apart;
# Spark is slow to import.

from kafscale.cli.commands.spark import lake_options as options
from kafscale.cli.commands.spark.lake_request import Request
from kafscale.cli.commands.spark.session import (
    ConfOption,
    MasterOption,
    PathOption,
    recorded_session,
    resolve_location,
    show,
)
from kafscale.cli.output import Output, OutputOption


def lake(  # noqa: PLR0917 - they are options, all of them named.
    topics: options.TopicsArgument = None,
    pattern: options.PatternOption = "",
    to: options.ToOption = "",
    table_format: options.TableFormatOption = options.TableFormat.ICEBERG,
    catalog: options.CatalogOption = "",
    catalog_property: options.PropertyOption = [],
    table: options.TableOption = "",
    value_format: options.ValueFormatOption = options.ValueFormat.RAW,
    schema: options.SchemaOption = "",
    message: options.MessageOption = "",
    descriptors: options.DescriptorsOption = None,
    registry: options.RegistryOption = "",
    subject: options.SubjectOption = "",
    registry_user: options.RegistryUserOption = "",
    registry_password: options.RegistryPasswordOption = "",
    registry_token: options.RegistryTokenOption = "",
    mode: options.ModeOption = options.Mode.APPEND,
    key: options.KeyOption = [],
    partition_by: options.UnitOption = None,
    start: options.StartOption = options.Start.EARLIEST,
    skip_lost: options.SkipOption = False,
    once: options.OnceOption = False,
    interval: options.IntervalOption = "10s",
    commit_bytes: options.CommitBytesOption = "4Gi",
    commit_records: options.CommitRecordsOption = 0,
    compression: options.CompressionOption = options.Compression.ZSTD,
    compact_files: options.CompactOption = False,
    expire_snapshots: options.ExpireOption = None,
    path: PathOption = "",
    master: MasterOption = "",
    conf: ConfOption = [],
    output: OutputOption = Output.TABLE,
) -> None:
    """Write topics to lake tables, exactly once; the progress is stored in each table.

    The job runs until it is stopped, or with --once until it has read all existing records. It can
    be restarted at any time, and concurrent runs are safe. Records that cannot be decoded go to the
    table NAME_dead_letters, with the reason.

    \b
    kafscale spark lake orders --to lake --once
    kafscale spark lake orders --to lake -f json --partition-by day
    kafscale spark lake customers --to lake -t delta -f json --mode upsert --key id
    kafscale spark lake --pattern 'shop.*' --catalog prod -f avro --registry http://registry:8081
    """
    given = dict(locals())
    for name in ("path", "master", "conf", "output"):
        del given[name]
    request = Request(**given)
    from kafscale.spark.jobs.lake import job

    location = resolve_location(path)
    settings, target = request.settings(location), request.target(location)
    with recorded_session("lake", location, topics or (), master=master, conf=conf) as session:
        spark, record = session
        summary = job.run(spark, settings, target, on_progress=record.update_progress)
        record.set_summary(summary)
    show(summary, output)
