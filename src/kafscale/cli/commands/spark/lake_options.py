"""What `kafscale spark lake` takes on its command line.

Names are checked here without loading anything of Spark or Arrow, as help does without them.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class TableFormat(StrEnum):
    """What a table is."""

    ICEBERG = "iceberg"
    DELTA = "delta"
    PARQUET = "parquet"


class ValueFormat(StrEnum):
    """What values are."""

    RAW = "raw"
    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"


class Mode(StrEnum):
    """What becomes of a record whose key the table has already."""

    APPEND = "append"
    UPSERT = "upsert"


class Unit(StrEnum):
    """How long a partition is."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"


class Start(StrEnum):
    """Where a new table begins."""

    EARLIEST = "earliest"
    LATEST = "latest"


class Compression(StrEnum):
    """How files are compressed."""

    ZSTD = "zstd"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    NONE = "none"


TopicsArgument = Annotated[list[str] | None, typer.Argument(help="The topics.", show_default=False)]
PatternOption = Annotated[
    str, typer.Option("--pattern", help="All topics whose whole name matches.", show_default=False)
]
ToOption = Annotated[
    str,
    typer.Option(
        "--to",
        help="A directory, or s3://bucket/prefix, for tables; with a catalog, its warehouse.",
        show_default=False,
    ),
]
CatalogOption = Annotated[
    str,
    typer.Option(
        "--catalog", help="A catalog of pyiceberg, by its name there.", show_default=False
    ),
]
PropertyOption = Annotated[
    list[str],
    typer.Option(
        "--catalog-property",
        metavar="KEY=VALUE",
        help="Of the catalog or the storage: type, uri, s3.endpoint, …; may be repeated.",
    ),
]
TableOption = Annotated[
    str,
    typer.Option(
        "--table",
        help="How tables are called, with {topic} in it; kafscale.{topic} in a catalog.",
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
    str, typer.Option("--message", help="Protobuf: the name of the message.", show_default=False)
]
DescriptorsOption = Annotated[
    Path | None,
    typer.Option(
        "--descriptors", exists=True, dir_okay=False, help="Protobuf: a FileDescriptorSet."
    ),
]
RegistryOption = Annotated[
    str, typer.Option("--registry", help="The URL of a schema registry.", show_default=False)
]
SubjectOption = Annotated[
    str,
    typer.Option(
        "--subject", help="The registry's subject to read values with.", show_default=False
    ),
]
TableFormatOption = Annotated[
    TableFormat, typer.Option("--table-format", "-t", help="What tables are.")
]
ValueFormatOption = Annotated[
    ValueFormat, typer.Option("--format", "-f", help="How values are decoded.")
]
ModeOption = Annotated[Mode, typer.Option("--mode", help="Whether rows take the place of others.")]
KeyOption = Annotated[
    list[str],
    typer.Option("--key", help="For upsert: a column rows are known by; may be repeated."),
]
UnitOption = Annotated[Unit | None, typer.Option("--partition-by", help="Of the time of records.")]
StartOption = Annotated[Start, typer.Option("--start", help="Where a new table begins.")]
SkipOption = Annotated[
    bool, typer.Option("--skip-lost", help="Go on where retention was faster than this.")
]
OnceOption = Annotated[bool, typer.Option("--once", help="End when all there is has come.")]
IntervalOption = Annotated[str, typer.Option("--interval", help="From commit to commit.")]
CommitBytesOption = Annotated[
    str, typer.Option("--commit-bytes", help="What one commit covers at most, of a topic.")
]
CommitRecordsOption = Annotated[
    int, typer.Option("--commit-records", min=0, help="The same in records; 0: any number.")
]
CompressionOption = Annotated[Compression, typer.Option("--compression", help="Of files.")]
CompactOption = Annotated[
    bool, typer.Option("--compact-files", help="Merge small files afterwards, or hourly.")
]
ExpireOption = Annotated[
    int | None, typer.Option("--expire-snapshots", min=0, help="Days that versions are kept.")
]
RegistryUserOption = Annotated[
    str, typer.Option("--registry-user", envvar="SCHEMA_REGISTRY_USER", show_default=False)
]
RegistryPasswordOption = Annotated[
    str,
    typer.Option(
        "--registry-password",
        envvar="SCHEMA_REGISTRY_PASSWORD",
        help="Better in the environment than here.",
        show_default=False,
    ),
]
RegistryTokenOption = Annotated[
    str, typer.Option("--registry-token", envvar="SCHEMA_REGISTRY_TOKEN", show_default=False)
]
