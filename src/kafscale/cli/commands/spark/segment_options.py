"""What the commands that keep segments healthy take on their command line."""

from typing import Annotated

import typer

from kafscale.text.units import parse_size

TopicsOption = Annotated[
    list[str], typer.Option("--topic", "-t", help="Only this topic; may be repeated.")
]
TargetOption = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="SIZE",
        help="How large segments are to become, at most 1Gi; by default segment.bytes.",
        show_default=False,
    ),
]


def read_target(text: str) -> int:
    """The bytes that the option means; 0 where nothing is said."""
    if not text:
        return 0
    from kafscale.spark.jobs.shared.segment_group import TARGET_BYTES_MAX  # noqa: PLC0415 - it loads slowly.

    try:
        size_bytes = parse_size(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} {error}", param_hint="--target") from None
    if not 0 < size_bytes <= TARGET_BYTES_MAX + 1:
        raise typer.BadParameter("a segment has at most 1Gi", param_hint="--target")
    return min(size_bytes, TARGET_BYTES_MAX)
