"""`kafscale spark report`: size, growth and cost of topics, and consumer lag."""

# ruff: noqa: B006, D301, PLC0415 - typer copies lists; \b keeps the lines of examples apart;
# Spark is slow to import.

from typing import TYPE_CHECKING

import typer

from kafscale.aio.clock import clock
from kafscale.cli.commands.spark.options import TopicsOption
from kafscale.cli.commands.spark.report_options import (
    BrokerPriceOption,
    BrokersOption,
    ColdReadsOption,
    GetPriceOption,
    GetsOption,
    HtmlOption,
    LagOption,
    MergedOption,
    PutPriceOption,
    RetentionOption,
    StoragePriceOption,
)
from kafscale.cli.commands.spark.session import (
    ConfOption,
    MasterOption,
    PathOption,
    recorded_session,
    resolve_location,
)
from kafscale.cli.connection.kafka import run as ask
from kafscale.cli.output import Output, OutputOption, print_data, print_error

if TYPE_CHECKING:
    from kafscale.spark.jobs.report.job import GroupLag


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
    master: MasterOption = "",
    conf: ConfOption = [],
    output: OutputOption = Output.TABLE,
) -> None:
    """Report the size, growth and S3 cost of topics, and the lag of consumer groups.

    \b
    kafscale spark report
    kafscale spark report --html report.html --bootstrap-server localhost:9092
    kafscale spark report --path s3://records/production -o json | jq '.topics[].storedBytes'
    """
    from kafscale.cli.commands.spark import report_tables
    from kafscale.observability.prices import Prices
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
    with recorded_session("report", settings.location, topic, master=master, conf=conf) as (
        spark,
        record,
    ):
        made = job.run(spark, settings, clock=clock, lags=lags)
        record.set_totals(*run_totals(made), problems=made.damaged)
    if html is not None:
        html.write_text(page(made), encoding="utf-8")
    if output is Output.TABLE:
        report_tables.print_report(made, html)
    else:
        print_data(report_tables.data(made), output)
    for damaged in made.damaged:
        print_error(damaged)
    if made.damaged:
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
