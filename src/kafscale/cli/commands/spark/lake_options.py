"""Options of `kafscale spark lake`, defined without importing Spark or Arrow."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class TableFormat(StrEnum):
    """Table formats."""

    ICEBERG = "iceberg"
    DELTA = "delta"
    PARQUET = "parquet"


class ValueFormat(StrEnum):
    """Formats of values."""

    RAW = "raw"
    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"


class Mode(StrEnum):
    """Whether rows are appended, or replace rows with the same key."""

    APPEND = "append"
    UPSERT = "upsert"


class Unit(StrEnum):
    """Time ranges of table partitions."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"


class Start(StrEnum):
    """Start positions of new tables."""

    EARLIEST = "earliest"
    LATEST = "latest"


class Compression(StrEnum):
    """Compression types of files."""

    ZSTD = "zstd"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    NONE = "none"


TopicsArgument = Annotated[
    list[str] | None, typer.Argument(help="Names of the topics.", show_default=False)
]
PatternOption = Annotated[
    str,
    typer.Option(
        "--pattern", help="Regular expression that topic names must match.", show_default=False
    ),
]
ToOption = Annotated[
    str,
    typer.Option(
        "--to",
        help="Directory or s3://bucket/prefix of the tables; with a catalog, its warehouse.",
        show_default=False,
    ),
]
CatalogOption = Annotated[
    str, typer.Option("--catalog", help="Name of a pyiceberg catalog.", show_default=False)
]
PropertyOption = Annotated[
    list[str],
    typer.Option(
        "--catalog-property",
        metavar="KEY=VALUE",
        help="Catalog or storage property: type, uri, s3.endpoint, …; may be repeated.",
    ),
]
TableOption = Annotated[
    str,
    typer.Option(
        "--table",
        help="Name of tables, with {topic}; by default kafscale.{topic} in a catalog.",
        show_default=False,
    ),
]
SchemaOption = Annotated[
    str,
    typer.Option(
        "--schema",
        help="JSON: 'id long, name string'. Avro: its JSON. Protobuf: definitions. Or @FILE.",
        show_default=False,
    ),
]
MessageOption = Annotated[
    str, typer.Option("--message", help="Protobuf: name of the message.", show_default=False)
]
DescriptorsOption = Annotated[
    Path | None,
    typer.Option(
        "--descriptors",
        exists=True,
        dir_okay=False,
        help="Protobuf: file with a FileDescriptorSet.",
    ),
]
RegistryOption = Annotated[
    str, typer.Option("--registry", help="URL of a schema registry.", show_default=False)
]
SubjectOption = Annotated[
    str,
    typer.Option(
        "--subject", help="Subject in the registry to decode values with.", show_default=False
    ),
]
TableFormatOption = Annotated[
    TableFormat, typer.Option("--table-format", "-t", help="Format of the tables.")
]
ValueFormatOption = Annotated[
    ValueFormat, typer.Option("--format", "-f", help="Format of the values.")
]
ModeOption = Annotated[
    Mode, typer.Option("--mode", help="Append rows, or replace rows with the same key.")
]
KeyOption = Annotated[
    list[str], typer.Option("--key", help="For upsert: key column; may be repeated.")
]
UnitOption = Annotated[
    Unit | None,
    typer.Option("--partition-by", help="Partition tables by the timestamp of records."),
]
StartOption = Annotated[Start, typer.Option("--start", help="Start position of a new table.")]
SkipOption = Annotated[
    bool,
    typer.Option("--skip-lost", help="Continue if retention deleted records that were not read."),
]
OnceOption = Annotated[
    bool, typer.Option("--once", help="Exit after all existing records are written.")
]
IntervalOption = Annotated[str, typer.Option("--interval", help="Time between commits.")]
CommitBytesOption = Annotated[
    str, typer.Option("--commit-bytes", help="Maximum bytes of a topic per commit.")
]
CommitRecordsOption = Annotated[
    int,
    typer.Option(
        "--commit-records", min=0, help="Maximum records of a topic per commit; 0: unlimited."
    ),
]
CompressionOption = Annotated[
    Compression, typer.Option("--compression", help="Compression type of files.")
]
CompactOption = Annotated[
    bool, typer.Option("--compact-files", help="Merge small files, hourly or at the end.")
]
ExpireOption = Annotated[
    int | None, typer.Option("--expire-snapshots", min=0, help="Days to keep old snapshots.")
]
RegistryUserOption = Annotated[
    str, typer.Option("--registry-user", envvar="SCHEMA_REGISTRY_USER", show_default=False)
]
RegistryPasswordOption = Annotated[
    str,
    typer.Option(
        "--registry-password",
        envvar="SCHEMA_REGISTRY_PASSWORD",
        help="Prefer the environment variable.",
        show_default=False,
    ),
]
RegistryTokenOption = Annotated[
    str, typer.Option("--registry-token", envvar="SCHEMA_REGISTRY_TOKEN", show_default=False)
]
