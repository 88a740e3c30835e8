"""`kafscale spark report`: size, growth and cost of topics, and consumer lag."""


# ruff: noqa: B006, D301, PLC0415 - typer copies lists; \b keeps the lines of examples apart;
# Spark is slow to import.

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from kafscale.aio.clock import clock
from kafscale.cli.commands.spark.options import TopicsOption
from kafscale.cli.commands.spark.session import (
    PathOption,
    SparkOptions,
    recorded_session,
    resolve_location,
)
from kafscale.cli.connection import run as ask
from kafscale.cli.output import Output, Part, print_data, print_error, print_line, print_table
from kafscale.text.formatting import format_size, format_time, pluralize

if TYPE_CHECKING:
    from kafscale.spark.jobs.report.cost import Profile
    from kafscale.spark.jobs.report.job import GroupLag, Report, TopicReport

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

_TOPIC_COLUMNS = (
    "topic",
    "partitions",
    "records",
    "stored",
    "in WAL",
    "segments",
    "size",
    "compression",
    "codecs",
    "oldest",
    "newest",
    "skew",
    "per day",
)
_PROFILE_COLUMNS = (
    "profile",
    "storage",
    "PUT",
    "GET",
    "S3 per month",
    "with brokers",
    "PUTs per day",
    "PUT interval",
    "budget",
)
_PROFILES = {"now": "(current settings)"}


def report(
    *,
    topic: TopicsOption = [],
    html: HtmlOption = None,
    bootstrap: LagOption = "",
    brokers: BrokersOption = None,
    retention_days: RetentionOption = 7.0,
    merged_bytes: MergedOption = 0,
    cold_reads: ColdReadsOption = 1.0,
    gets_per_day: GetsOption = None,
    storage_price: StoragePriceOption = 0.023,
    put_price: PutPriceOption = 0.005,
    get_price: GetPriceOption = 0.0004,
    broker_price: BrokerPriceOption = 30.0,
    path: PathOption = "",
    spark: SparkOptions,
) -> None:
    """Report the size, growth and S3 cost of topics, and the lag of consumer groups.

    \b
    kafscale spark report
    kafscale spark report --html report.html --bootstrap-server localhost:9092
    kafscale spark report --path s3://records/production -o json | jq '.topics[].storedBytes'
    """
    from kafscale.admin.cluster.cost import Prices
    from kafscale.spark.jobs.report import job
    from kafscale.spark.jobs.report.page import page
    from kafscale.spark.jobs.report.run_totals import run_totals

    settings = job.ReportSettings(
        location=resolve_location(path),
        topics=tuple(topic),
        prices=Prices(
            storage_gb_month=storage_price,
            put_thousand=put_price,
            get_thousand=get_price,
            broker_month=broker_price,
        ),
        brokers=brokers,
        retention_days=retention_days,
        merged_bytes=merged_bytes,
        cold_reads=cold_reads,
        gets_per_day=gets_per_day,
    )
    lags = _lags(bootstrap, topic) if bootstrap else None
    with recorded_session("report", settings.location, topic, spark) as (session, record):
        report = job.run(session, settings, clock=clock, lags=lags)
        record.set_totals(*run_totals(report), problems=report.damaged)
    if html is not None:
        html.write_text(page(report), encoding="utf-8")
    if spark.output is Output.TABLE:
        _print_report(report, html)
    else:
        print_data(_data(report), spark.output)
    for damaged in report.damaged:
        print_error(damaged)
    if report.damaged:
        raise typer.Exit(1)


def _lags(bootstrap: str, topics: list[str]) -> "list[GroupLag]":
    """The lag of groups by topic, as the cluster reports it."""
    from kafscale.admin.groups import groups as group_admin
    from kafscale.spark.jobs.report.job import GroupLag

    behind: dict[tuple[str, str], list[int]] = {}
    for group in ask(bootstrap, lambda client: group_admin.describe(client, ())):
        for row in group.offsets:
            if row.lag is not None and row.topic in (topics or (row.topic,)):
                behind.setdefault((group.group, row.topic), []).append(row.lag)
    return [GroupLag(*place, sum(lags), len(lags)) for place, lags in behind.items()]


def _data(report: "Report") -> dict[str, Any]:
    """The report as JSON data, with the totals of the tables."""
    built: dict[str, Any] = msgspec.to_builtins(report)
    built["storedBytes"] = report.stored_bytes
    built["records"] = report.records
    built["bytesPerDay"] = report.bytes_per_day
    for profile, source in zip(built["profiles"], report.profiles, strict=True):
        profile["bill"] |= {"s3": source.bill.s3, "total": source.bill.total}
        profile["putsPerDay"]["total"] = source.puts_per_day.total
    return built


def _print_report(report: "Report", html: Path | None) -> None:
    if report.topics:
        print_table(_TOPIC_COLUMNS, map(_topic, report.topics))
        print_line()
    print_table(_PROFILE_COLUMNS, map(_profile, report.profiles))
    print_line()
    if report.lags:
        rows = ((one.group, one.topic, f"{one.lag:,}") for one in report.lags)
        print_table(("group", "topic", "lag"), rows)
        print_line()
    print_line(
        ("report", "bold"),
        f": {pluralize(len(report.topics), 'topic')}, {pluralize(report.records, 'record')}, "
        f"{format_size(report.stored_bytes)} stored, "
        f"{format_size(report.bytes_per_day)} per day",
    )
    if html is not None:
        print_line(f"wrote {html}")


def _topic(topic: "TopicReport") -> Iterable[Part]:
    return (
        topic.topic,
        f"{topic.partitions:,}",
        f"{topic.records:,}",
        format_size(topic.stored_bytes),
        f"{topic.wal_share:.0%}",
        f"{topic.segments:,}",
        format_size(topic.mean_segment_bytes),
        "-" if topic.compression is None else f"{topic.compression:.1f}x",
        " ".join(f"{codec} {share:.0%}" for codec, share in topic.codecs.items()) or "-",
        _time(topic.oldest_ms),
        _time(topic.newest_ms),
        f"{topic.skew:.1f}",
        format_size(topic.bytes_per_day),
    )


def _profile(profile: "Profile") -> Iterable[Part]:
    bill = profile.bill
    interval = profile.wal_interval_seconds
    return (
        _PROFILES.get(profile.name, profile.name),
        *(f"${sum_:,.2f}" for sum_ in (bill.storage, bill.puts, bill.gets, bill.s3, bill.total)),
        f"{profile.puts_per_day.total:,.0f}",
        "-" if interval is None else f"{interval:.1f} s",
        ("within", "green") if profile.is_within_budget else ("exceeded", "yellow"),
    )


def _time(time_ms: int | None) -> str:
    """A time without fractions of a second."""
    return "-" if time_ms is None else format_time(time_ms)[:19]
