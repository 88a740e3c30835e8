"""`kafscale segment`: list, inspect and verify segments, indexes and WAL objects in files."""

# ruff: noqa: PLC0415 - codecs and formats are slow to import.

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from kafscale.cli.output import Output, OutputOption, bytes_bar, print_data, print_result
from kafscale.errors import KafscaleError

PathsArgument = Annotated[
    list[Path], typer.Argument(help="Files (.kfs, .index, .kfw), or directories to search.")
]

app = typer.Typer(
    no_args_is_help=True, help="List, inspect and verify segments, indexes and WAL objects."
)


@app.command("list")
def list_objects(paths: PathsArgument, output: OutputOption = Output.TABLE) -> None:
    """List objects with a summary of their headers and footers."""
    from kafscale.cli.commands.segment import files, tables

    summaries = [files.summarize(path) for path in files.find(paths)]
    print_result(summaries, output, tables.print_summaries)


@app.command()
def inspect(
    path: Annotated[Path, typer.Argument(help="A file: .kfs, .index or .kfw.")],
    records: Annotated[
        bool, typer.Option("--records", "-r", help="Also show the records of each batch.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the content of an object; of a damaged segment, show what can be salvaged."""
    from kafscale.cli.commands.segment import files as segment_files
    from kafscale.cli.commands.segment import tables as segment_tables

    if path.is_dir():
        raise KafscaleError(f"{path} is a directory; list its objects with: kafscale segment list")
    (file,) = segment_files.find([path])
    content = segment_files.describe(file, records=records)
    print_result(content, output, segment_tables.print_content)
    if "damage" in content:
        raise KafscaleError(f"{path}: {content['damage']}")


@app.command()
def verify(paths: PathsArgument, output: OutputOption = Output.TABLE) -> None:
    """Read objects completely and report damaged ones; exit with 1 if there are any."""
    from kafscale.cli.commands.segment import files as segment_files
    from kafscale.cli.commands.segment import tables as segment_tables

    files = segment_files.find(paths)
    damaged: list[dict[str, str]] = []
    for path in _with_progress(files):
        try:
            segment_files.verify_file(path)
        except KafscaleError as error:
            reason = str(error).removeprefix(f"{path}: ")
            damaged.append({"path": str(path), "reason": reason})
    without_index = [str(path) for path in segment_files.without_index(files)]
    if output is Output.TABLE:
        segment_tables.print_verdict(len(files), damaged, without_index)
    else:
        print_data(
            {"objectCount": len(files), "damaged": damaged, "segmentsWithoutIndex": without_index},
            output,
        )
    if damaged:
        raise typer.Exit(1)


def _with_progress(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the paths, with a progress bar."""
    # A running broker may delete a file; opening it reports that.
    sizes = [path.stat().st_size if path.exists() else 0 for path in paths]
    total, done = sum(sizes), 0
    with bytes_bar("verify") as progress:
        for path, size_bytes in zip(paths, sizes, strict=True):
            yield path
            done += size_bytes
            progress(done, total)
