"""What the jobs that copy topics take on their command line in the same way."""

from pathlib import Path
from typing import Annotated

import typer

from kafscale.aio.clock import clock
from kafscale.cli.connection.kafka import bootstrap_addresses
from kafscale.cli.options import parse_pairs
from kafscale.text.formatting import parse_time
from kafscale.text.units import parse_duration

TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic to copy from.")]
TargetArgument = Annotated[str, typer.Argument(metavar="TARGET", help="The topic to write into.")]
TopicConfigOption = Annotated[
    list[str],
    typer.Option(
        "--topic-config", metavar="KEY=VALUE", help="A config of a new topic; may be repeated."
    ),
]
PartitionsOption = Annotated[
    int | None,
    typer.Option(
        "--partitions", min=1, help="Partitions of a new topic; by default as many as the source."
    ),
]


def brokers(option: str) -> str:
    """The brokers that an option names, or the settings, as one text."""
    return ",".join(map(str, bootstrap_addresses(option)))


def read_time(option: str, text: str) -> int | None:
    """The time that a text means: a time, or how long ago."""
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
            " nor how long ago such as 15m",
            param_hint=option,
        ) from None


def read_settings(pairs: list[str], file: Path | None) -> dict[str, str]:
    """The settings of a client: from a file, where secrets belong, and from the command line.

    A file has a setting on each line, key=value; lines that begin with # are comments.
    """
    lines = [] if file is None else file.read_text().splitlines()
    told = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return {key: value.strip() for key, value in parse_pairs([*told, *pairs])}
