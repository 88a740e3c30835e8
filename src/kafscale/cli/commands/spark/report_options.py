"""Options of `kafscale spark report`."""

from pathlib import Path
from typing import Annotated

import typer

_PRICES = "Prices, in dollars"
_TRAFFIC = "Assumptions"

HtmlOption = Annotated[
    Path | None,
    typer.Option(
        "--html", metavar="FILE", dir_okay=False, help="Also write an HTML page with charts."
    ),
]
LagOption = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,...",
        help="Bootstrap servers, to include consumer lag; by default it is left out.",
        show_default=False,
    ),
]
BrokersOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        rich_help_panel=_TRAFFIC,
        help="Number of brokers; by default those that wrote recently.",
    ),
]
RetentionOption = Annotated[
    float,
    typer.Option(min=0, rich_help_panel=_TRAFFIC, help="Default retention of topics, in days."),
]
MergedOption = Annotated[
    int,
    typer.Option(
        min=0,
        rich_help_panel=_TRAFFIC,
        help="Size of merged segments; 0 if segments are not merged.",
    ),
]
ColdReadsOption = Annotated[
    float,
    typer.Option(
        min=0, rich_help_panel=_TRAFFIC, help="How often each byte is read from the bucket."
    ),
]
GetsOption = Annotated[
    float | None,
    typer.Option(min=0, rich_help_panel=_TRAFFIC, help="GET requests per day, if known."),
]
StoragePriceOption = Annotated[
    float, typer.Option(min=0, rich_help_panel=_PRICES, help="Storage of a GB for a month.")
]
PutPriceOption = Annotated[
    float, typer.Option(min=0, rich_help_panel=_PRICES, help="1000 PUT requests.")
]
GetPriceOption = Annotated[
    float, typer.Option(min=0, rich_help_panel=_PRICES, help="1000 GET requests.")
]
BrokerPriceOption = Annotated[
    float, typer.Option(min=0, rich_help_panel=_PRICES, help="A broker for a month.")
]
