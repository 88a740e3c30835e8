"""`kafscale segment`: look into the objects that hold records, as files on this machine."""

# ruff: noqa: PLC0415 - codecs and formats take a while to load, and no other command needs them.

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from kafscale.cli.output import Output, OutputOption, print_data
from kafscale.errors import KafscaleError

PathsArgument = Annotated[
    list[Path], typer.Argument(help="Files (.kfs, .index, .kfw), or directories to look through.")
]

app = typer.Typer(
    no_args_is_help=True,
    help="Look into the objects that hold records: segments, their indexes, the write-ahead log.",
)


@app.command("list")
def list_objects(paths: PathsArgument, output: OutputOption = Output.TABLE) -> None:
    """List objects with what they say of themselves."""
    from kafscale.cli.commands.segment import files, tables

    summaries = [files.summarize(path) for path in files.find(paths)]
    if output is Output.TABLE:
        tables.print_summaries(summaries)
    else:
        print_data(summaries, output)


@app.command()
def inspect(
    path: Annotated[Path, typer.Argument(help="A file: .kfs, .index or .kfw.")],
    records: Annotated[
        bool, typer.Option("--records", "-r", help="Show the records of each batch, too.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Take one object apart; of a damaged segment, show what can be salvaged."""
    from kafscale.cli.commands.segment import files as segment_files
    from kafscale.cli.commands.segment import tables as segment_tables

    if path.is_dir():
        raise KafscaleError(f"{path}: is a directory; `kafscale segment list` lists its objects")
    (found,) = segment_files.find([path])
    content = segment_files.take_apart(found, records=records)
    if output is Output.TABLE:
        segment_tables.print_content(content)
    else:
        print_data(content, output)
    if "damage" in content:
        raise KafscaleError(f"{path}: {content['damage']}")


@app.command()
def verify(paths: PathsArgument, output: OutputOption = Output.TABLE) -> None:
    """Read objects to the last byte, and say which are damaged; exits with 1 if any is."""
    from kafscale.cli.commands.segment import files as segment_files
    from kafscale.cli.commands.segment import tables as segment_tables

    found = segment_files.find(paths)
    damaged: list[dict[str, str]] = []
    for path in _with_progress(found):
        try:
            segment_files.prove(path)
        except KafscaleError as error:
            reason = str(error).removeprefix(f"{path}: ")
            damaged.append({"path": str(path), "reason": reason})
    alone = [str(path) for path in segment_files.without_index(found)]
    if output is Output.TABLE:
        segment_tables.print_verdict(len(found), damaged, alone)
    else:
        print_data(
            {"objectCount": len(found), "damaged": damaged, "segmentsWithoutIndex": alone}, output
        )
    if damaged:
        raise typer.Exit(1)


def _with_progress(paths: Sequence[Path]) -> Iterator[Path]:
    """The paths one by one, with a bar on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    # A file may vanish while a broker is at work; reading it will tell.
    sizes = [path.stat().st_size if path.exists() else 0 for path in paths]
    with Progress(
        BarColumn(),
        DownloadColumn(binary_units=True),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task("verify", total=sum(sizes))
        for path, size_bytes in zip(paths, sizes, strict=True):
            yield path
            progress.advance(task, size_bytes)
