"""Options of `kafscale spark lake`, defined without importing Spark or Arrow."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import typer

TableFormat = Literal["iceberg", "delta", "parquet"]
ValueFormat = Literal["raw", "json", "avro", "protobuf"]
Mode = Literal["append", "upsert"]
Unit = Literal["hour", "day", "month"]
Start = Literal["earliest", "latest"]
Compression = Literal["zstd", "snappy", "lz4", "none"]


@dataclass(frozen=True, kw_only=True)
class LakeOptions:
    """The options that say what to read, and which tables to write."""

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
        TableFormat, typer.Option("--table-format", "-t", help="Format of the tables.")
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
        ValueFormat, typer.Option("--format", "-f", help="Format of the values.")
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
    registry_password: Annotated[
        str,
        typer.Option(
            "--registry-password",
            envvar="SCHEMA_REGISTRY_PASSWORD",
            help="Prefer the environment variable.",
            show_default=False,
        ),
    ] = field(default="", repr=False)
    registry_token: Annotated[
        str, typer.Option("--registry-token", envvar="SCHEMA_REGISTRY_TOKEN", show_default=False)
    ] = field(default="", repr=False)
    mode: Annotated[
        Mode, typer.Option("--mode", help="Append rows, or replace rows with the same key.")
    ] = "append"
    key: Annotated[
        list[str], typer.Option("--key", help="For upsert: key column; may be repeated.")
    ] = field(default_factory=list)
    partition_by: Annotated[
        Unit | None,
        typer.Option("--partition-by", help="Partition tables by the timestamp of records."),
    ] = None
    start: Annotated[Start, typer.Option("--start", help="Start position of a new table.")] = (
        "earliest"
    )
    skip_lost: Annotated[
        bool,
        typer.Option(
            "--skip-lost", help="Continue if retention deleted records that were not read."
        ),
    ] = False
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
        Compression, typer.Option("--compression", help="Compression type of files.")
    ] = "zstd"
    compact_files: Annotated[
        bool, typer.Option("--compact-files", help="Merge small files, hourly or at the end.")
    ] = False
    expire_snapshots: Annotated[
        int | None, typer.Option("--expire-snapshots", min=0, help="Days to keep old snapshots.")
    ] = None
