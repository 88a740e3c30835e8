"""Tables and JSON data of `kafscale spark report`."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kafscale.cli.output import Part, print_line, print_table
from kafscale.text.formatting import format_size, format_time, pluralize

if TYPE_CHECKING:
    from kafscale.spark.jobs.report.cost import Profile
    from kafscale.spark.jobs.report.job import Report, TopicReport

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


def data(report: "Report") -> dict[str, Any]:
    """The report as JSON data, with the totals of the tables."""
    built: dict[str, Any] = msgspec.to_builtins(report)
    built["storedBytes"] = report.stored_bytes
    built["records"] = report.records
    built["bytesPerDay"] = report.bytes_per_day
    for profile, source in zip(built["profiles"], report.profiles, strict=True):
        profile["bill"] |= {"s3": source.bill.s3, "total": source.bill.total}
        profile["putsPerDay"]["total"] = source.puts_per_day.total
    return built


def print_report(report: "Report", html: Path | None) -> None:
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
