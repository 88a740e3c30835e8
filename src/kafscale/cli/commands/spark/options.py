"""Options that several Spark commands share."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from kafscale.aio.clock import clock
from kafscale.cli.connection import BootstrapOption, bootstrap_addresses, client_security
from kafscale.cli.options import parse_option, parse_pairs
from kafscale.cli.secrets import refuse_secrets
from kafscale.text.formatting import parse_time
from kafscale.text.units import parse_duration, parse_size

TopicsOption = Annotated[
    list[str], typer.Option("--topic", "-t", help="Only this topic; may be repeated.")
]
SegmentBytesOption = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="SIZE",
        help="Target size of segments, at most 1Gi; by default segment.bytes of the topic.",
        show_default=False,
    ),
]
IsolationOption = Annotated[
    Literal["read_committed", "read_uncommitted"],
    typer.Option(
        "--isolation-level", help="Leave out records of open and aborted transactions, or read all."
    ),
]
TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", help="Source topic.")]
TargetArgument = Annotated[str, typer.Argument(metavar="TARGET", help="Target topic.")]


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """The cluster of the target topic, and how to create the topic."""

    bootstrap: BootstrapOption = ""
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            min=1,
            help="Partitions of a new topic; by default as many as the source.",
        ),
    ] = None
    topic_config: Annotated[
        list[str],
        typer.Option(
            "--topic-config", metavar="KEY=VALUE", help="Config of a new topic; may be repeated."
        ),
    ] = field(default_factory=list)

    def settings(self) -> dict[str, Any]:
        """The options as settings of a job."""
        return {
            "bootstrap": bootstrap_servers(self.bootstrap),
            "security": client_security(),
            "partition_count": self.partitions,
            "configs": dict(parse_pairs(self.topic_config)),
        }


def bootstrap_servers(option: str) -> str:
    """The bootstrap servers of the option or of the settings, separated by commas."""
    return ",".join(map(str, bootstrap_addresses(option)))


def read_time(option: str, text: str) -> int | None:
    """Parse a time, or a duration ago."""
    if not text:
        return None
    try:
        return max(0, clock() - parse_duration(text))
    except ValueError:
        pass
    try:
        return parse_time(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is neither a time such as 2026-01-31T12:00:00Z or @1769860800000,"
            " nor a duration such as 15m",
            param_hint=option,
        ) from None


def read_settings(option: str, pairs: list[str], file: Path | None) -> dict[str, str]:
    """Client properties from a file and from an option, which takes precedence.

    A file has one key=value per line; lines that start with # are comments.
    """
    given = parse_pairs(pairs)
    refuse_secrets(option, given, f"a file, and name it with {option}-file")
    lines = [] if file is None else file.read_text().splitlines()
    pairs_in_file = [
        line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")
    ]
    return {key: value.strip() for key, value in [*parse_pairs(pairs_in_file), *given]}


def read_segment_bytes(text: str) -> int:
    """Parse the target size of segments; 0 if the option is not given."""
    if not text:
        return 0
    # Slow to import.
    from kafscale.spark.jobs.shared.segment_group import TARGET_BYTES_MAX  # noqa: PLC0415

    size_bytes = parse_option("--target", text, parse_size)
    if not 0 < size_bytes <= TARGET_BYTES_MAX + 1:
        raise typer.BadParameter("a segment has at most 1Gi", param_hint="--target")
    return min(size_bytes, TARGET_BYTES_MAX)
