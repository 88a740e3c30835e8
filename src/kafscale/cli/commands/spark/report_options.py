"""What `kafscale spark report` takes on its command line."""

from pathlib import Path
from typing import Annotated

import typer

_PRICES = "Prices, in dollars"
_TRAFFIC = "What to reckon with"

HtmlOption = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", dir_okay=False, help="Write a page with plots, too."),
]
LagOption = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,...",
        help="Brokers to ask how far consumer groups are; nobody is asked without.",
        show_default=False,
    ),
]
BrokersOption = Annotated[
    int | None,
    typer.Option(
        min=1, rich_help_panel=_TRAFFIC, help="How many there are; else who wrote lately."
    ),
]
RetentionOption = Annotated[
    float,
    typer.Option(min=0, rich_help_panel=_TRAFFIC, help="How long topics keep records, by default."),
]
MergedOption = Annotated[
    int,
    typer.Option(min=0, rich_help_panel=_TRAFFIC, help="How large merged segments are; 0: none."),
]
ColdReadsOption = Annotated[
    float,
    typer.Option(min=0, rich_help_panel=_TRAFFIC, help="How often a byte is read from the bucket."),
]
GetsOption = Annotated[
    float | None,
    typer.Option(min=0, rich_help_panel=_TRAFFIC, help="How many reads there are, if known."),
]
StoragePriceOption = Annotated[
    float, typer.Option(min=0, rich_help_panel=_PRICES, help="Of a GB for a month.")
]
PutPriceOption = Annotated[
    float, typer.Option(min=0, rich_help_panel=_PRICES, help="Of 1000 writes.")
]
GetPriceOption = Annotated[
    float, typer.Option(min=0, rich_help_panel=_PRICES, help="Of 1000 reads.")
]
BrokerPriceOption = Annotated[
    float, typer.Option(min=0, rich_help_panel=_PRICES, help="Of a broker for a month.")
]
