"""`kafscale spark lake`: write topics to lake tables, exactly once."""

# ruff: noqa: D301, PLC0415 - typer copies lists; \b keeps the lines of examples apart;
# Spark is slow to import.

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from kafscale.cli.commands.spark.options import IsolationOption
from kafscale.cli.commands.spark.session import (
    PathOption,
    SparkOptions,
    recorded_session,
    resolve_location,
    show,
)
from kafscale.cli.options import parse_option, parse_pairs
from kafscale.cli.secrets import read_secret, refuse_secrets
from kafscale.errors import InvalidRequestError
from kafscale.text.units import parse_duration, parse_size

if TYPE_CHECKING:
    from kafscale.spark.jobs.lake.settings import LakeSettings
    from kafscale.spark.read.location import Location
    from kafscale.spark.source.subscription import Subscription
    from kafscale.spark.tables.target import Target
    from kafscale.spark.values import ValueSpec

_REGISTRY_PASSWORD: Final = "SCHEMA_REGISTRY_PASSWORD"  # noqa: S105 - the name of a variable.
_REGISTRY_TOKEN: Final = "SCHEMA_REGISTRY_TOKEN"  # noqa: S105 - the name of a variable.


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to read and which tables to write; defined without importing Spark or Arrow."""

    topics: Annotated[
        list[str] | None, typer.Argument(help="Names of the topics.", show_default=False)
    ] = None
    pattern: Annotated[
        str,
        typer.Option(
            "--pattern", help="Regular expression that topic names must match.", show_default=False
        ),
    ] = ""
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="Directory or s3://bucket/prefix of the tables; with a catalog, its warehouse.",
            show_default=False,
        ),
    ] = ""
    table_format: Annotated[
        Literal["iceberg", "delta", "parquet"],
        typer.Option("--table-format", "-t", help="Format of the tables."),
    ] = "iceberg"
    catalog: Annotated[
        str, typer.Option("--catalog", help="Name of a pyiceberg catalog.", show_default=False)
    ] = ""
    catalog_property: Annotated[
        list[str],
        typer.Option(
            "--catalog-property",
            metavar="KEY=VALUE",
            help="Catalog or storage property: type, uri, s3.endpoint, …; may be repeated.",
        ),
    ] = field(default_factory=list)
    table: Annotated[
        str,
        typer.Option(
            "--table",
            help="Name of tables, with {topic}; by default kafscale.{topic} in a catalog.",
            show_default=False,
        ),
    ] = ""
    value_format: Annotated[
        Literal["raw", "json", "avro", "protobuf"],
        typer.Option("--format", "-f", help="Format of the values."),
    ] = "raw"
    schema: Annotated[
        str,
        typer.Option(
            "--schema",
            help="JSON: 'id long, name string'. Avro: its JSON. Protobuf: definitions. Or @FILE.",
            show_default=False,
        ),
    ] = ""
    message: Annotated[
        str, typer.Option("--message", help="Protobuf: name of the message.", show_default=False)
    ] = ""
    descriptors: Annotated[
        Path | None,
        typer.Option(
            "--descriptors",
            exists=True,
            dir_okay=False,
            help="Protobuf: file with a FileDescriptorSet.",
        ),
    ] = None
    registry: Annotated[
        str, typer.Option("--registry", help="URL of a schema registry.", show_default=False)
    ] = ""
    subject: Annotated[
        str,
        typer.Option(
            "--subject", help="Subject in the registry to decode values with.", show_default=False
        ),
    ] = ""
    registry_user: Annotated[
        str, typer.Option("--registry-user", envvar="SCHEMA_REGISTRY_USER", show_default=False)
    ] = ""
    registry_password_file: Annotated[
        Path | None,
        typer.Option(
            "--registry-password-file",
            exists=True,
            dir_okay=False,
            help=f"File with the password; by default, {_REGISTRY_PASSWORD} has it.",
            show_default=False,
        ),
    ] = None
    registry_token_file: Annotated[
        Path | None,
        typer.Option(
            "--registry-token-file",
            exists=True,
            dir_okay=False,
            help=f"File with a bearer token; by default, {_REGISTRY_TOKEN} has it.",
            show_default=False,
        ),
    ] = None
    mode: Annotated[
        Literal["append", "upsert"],
        typer.Option("--mode", help="Append rows, or replace rows with the same key."),
    ] = "append"
    key: Annotated[
        list[str], typer.Option("--key", help="For upsert: key column; may be repeated.")
    ] = field(default_factory=list)
    partition_by: Annotated[
        Literal["hour", "day", "month"] | None,
        typer.Option("--partition-by", help="Partition tables by the timestamp of records."),
    ] = None
    start: Annotated[
        Literal["earliest", "latest"],
        typer.Option("--start", help="Start position of a new table."),
    ] = "earliest"
    skip_lost: Annotated[
        bool,
        typer.Option(
            "--skip-lost", help="Continue if retention deleted records that were not read."
        ),
    ] = False
    isolation_level: IsolationOption = "read_committed"
    once: Annotated[
        bool, typer.Option("--once", help="Exit after all existing records are written.")
    ] = False
    interval: Annotated[str, typer.Option("--interval", help="Time between commits.")] = "10s"
    commit_bytes: Annotated[
        str, typer.Option("--commit-bytes", help="Maximum bytes of a topic per commit.")
    ] = "4Gi"
    commit_records: Annotated[
        int,
        typer.Option(
            "--commit-records", min=0, help="Maximum records of a topic per commit; 0: unlimited."
        ),
    ] = 0
    compression: Annotated[
        Literal["zstd", "snappy", "lz4", "none"],
        typer.Option("--compression", help="Compression type of files."),
    ] = "zstd"
    compact_files: Annotated[
        bool, typer.Option("--compact-files", help="Merge small files, hourly or at the end.")
    ] = False
    expire_snapshots: Annotated[
        int | None, typer.Option("--expire-snapshots", min=0, help="Days to keep old snapshots.")
    ] = None

    def __post_init__(self) -> None:
        """Refuse secrets among the properties."""
        refuse_secrets(
            "--catalog-property",
            parse_pairs(self.catalog_property),
            "~/.pyiceberg.yaml, or a variable such as PYICEBERG_CATALOG__DEFAULT__CREDENTIAL",
        )

    def settings(self, location: "Location") -> "LakeSettings":
        from kafscale.spark.jobs.lake.settings import LakeSettings, Mode, Start
        from kafscale.spark.tables.maintenance import DAY_MS, MaintenanceOptions
        from kafscale.spark.tables.time_partitions import TimeGranularity
        from kafscale.spark.tables.writer import Encoding

        days = self.expire_snapshots
        return LakeSettings(
            location=location,
            subscription=self._subscription(),
            values=self._values(),
            mode=Mode(self.mode),
            keys=tuple(self.key),
            granularity=TimeGranularity(self.partition_by) if self.partition_by else None,
            start=Start(self.start),
            fail_on_data_loss=not self.skip_lost,
            is_committed=self.isolation_level == "read_committed",
            is_once=self.once,
            interval_ms=parse_option("--interval", self.interval, parse_duration),
            commit_bytes_max=parse_option("--commit-bytes", self.commit_bytes, parse_size),
            commit_records_max=self.commit_records,
            encoding=Encoding(compression=str(self.compression)),
            maintenance=MaintenanceOptions(
                merges_files=self.compact_files,
                expires_after_ms=None if days is None else days * DAY_MS,
            ),
        )

    def target(self, location: "Location") -> "Target":
        """Where tables are written; with the credentials of the bucket of the records."""
        from kafscale.spark.tables.target import TableFormat, Target

        is_plain = self.table_format == "parquet"
        if is_plain and (self.compact_files or self.mode == "upsert"):
            raise InvalidRequestError("plain Parquet tables are append-only: use Iceberg or Delta")
        known: dict[str, str] = {}
        if location.bucket is not None and self.to.startswith("s3"):
            bucket = location.bucket
            known = {
                "s3.endpoint": bucket.endpoint,
                "s3.region": bucket.region,
                "s3.access-key-id": bucket.access_key,
                "s3.secret-access-key": bucket.secret_key,
                "s3.session-token": bucket.session_token,
                "s3.role-arn": bucket.role_arn,
            }
        given = dict(parse_pairs(self.catalog_property))
        return Target(
            table_format=TableFormat(self.table_format),
            path=self.to,
            catalog=self.catalog,
            properties={key: text for key, text in known.items() if text} | given,
            table=self.table,
        )

    def _subscription(self) -> "Subscription":
        from kafscale.spark.source.subscription import Subscription

        if bool(self.topics) == bool(self.pattern):
            raise typer.BadParameter("name topics, or give --pattern", param_hint="TOPICS")
        if self.topics:
            return Subscription(names=frozenset(self.topics))
        return Subscription.to_pattern(self.pattern)

    def _values(self) -> "ValueSpec | None":
        """How to decode values; None keeps the bytes."""
        from kafscale.spark.values import RegistryAccess, ValueSpec, pin_schema

        access = None
        if self.registry:
            access = RegistryAccess(
                url=self.registry,
                user=self.registry_user,
                password=read_secret(
                    "--registry-password-file", self.registry_password_file, _REGISTRY_PASSWORD
                ),
                token=read_secret(
                    "--registry-token-file", self.registry_token_file, _REGISTRY_TOKEN
                ),
            )
        if self.value_format == "raw" and not (self.schema or access):
            return None
        return pin_schema(
            ValueSpec(
                format=str(self.value_format),
                schema=_text("--schema", self.schema),
                descriptors=self.descriptors.read_bytes() if self.descriptors else b"",
                message=self.message,
                registry=access,
                subject=self.subject,
            )
        )


def lake(*, request: Request, path: PathOption = "", spark: SparkOptions) -> None:
    """Write topics to lake tables, exactly once; the progress is stored in each table.

    The job runs until it is stopped, or with --once until it has read all existing records. It can
    be restarted at any time. Concurrent runs write no record twice: of commits at the same time one
    succeeds, and the others repeat their work; a run fails after 100 such conflicts in a row.
    Records that cannot be decoded go to the table NAME_dead_letters, with the reason.

    \b
    kafscale spark lake orders --to lake --once
    kafscale spark lake orders --to lake -f json --partition-by day
    kafscale spark lake customers --to lake -t delta -f json --mode upsert --key id
    kafscale spark lake --pattern 'shop.*' --catalog prod -f avro --registry http://registry:8081
    """
    from kafscale.spark.jobs.lake import job

    location = resolve_location(path)
    settings, target = request.settings(location), request.target(location)
    with recorded_session("lake", location, request.topics or (), spark) as (session, record):
        summary = job.run(session, settings, target, on_progress=record.update_progress)
        record.set_summary(summary)
    show(summary, spark.output)


def _text(option: str, given: str) -> str:
    """The text, or the content of the file that it names after an @."""
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
