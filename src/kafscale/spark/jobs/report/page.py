"""Renders the report as a self-contained HTML page.

The page has a summary, key figures, charts and a table of all topics. Invariants: it has no scripts
and loads no URLs, and names of topics and groups are escaped. Pure.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Final

from kafscale.spark.jobs.report.charts import Mark, bars, columns, stack
from kafscale.spark.jobs.report.cost import Profile
from kafscale.spark.jobs.report.job import GroupLag, Report, TopicReport
from kafscale.spark.jobs.report.style import STYLE
from kafscale.text.formatting import (
    format_count,
    format_decimal_size,
    format_dollars,
    format_duration,
    format_minute,
    format_percent,
    format_ratio,
    pluralize,
)
from kafscale.text.units import show_size

BARS_MAX: Final = 12
"""How many topics or groups a chart shows; the others are summed up in one bar."""

DAYS_MAX: Final = 60

_PROFILES: Final = {
    "now": ("Current", "measured from the WAL objects of the last day"),
    "latency": ("Tuned for latency", "producers are acknowledged as soon as possible"),
    "cost": ("Tuned for cost", "producers wait for larger objects"),
}


def page(report: Report) -> str:
    title = f"Kafscale report: {report.location}"
    left = (
        _card("Bytes by topic", "Segments, indexes and the write-ahead log.", _topics(report)),
        _card("S3 cost per month", _cost_note(report), _costs(report)),
    )
    right = (
        _card("Growth", "Stored bytes by the date of their records.", _growth(report)),
        _card(
            "Segment sizes",
            "Few large segments are read faster, and with fewer requests, than many small ones.",
            _sizes(report),
        ),
        _lags(report.lags),
    )
    below = (_damage(report.damaged), _card("Topics", "", _table(report.topics)))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>"
        f"<header><h1>Kafscale report</h1><p>{escape(report.location)} · "
        f"{format_minute(report.time_ms)} UTC</p></header>"
        f'<p class="lead">{_lead(report)}</p>{_figures(report)}'
        f'<div class="cards"><div class="side">{"".join(left)}</div>'
        f'<div class="side">{"".join(right)}</div></div>{"".join(below)}'
        f"<footer>{_footer(report)}</footer></main></body></html>\n"
    )


# --- summary --------------------------------------------------------------------------------------


def _lead(report: Report) -> str:
    """Return the summary sentences."""
    if not report.topics:
        return "There are no topics."
    count = len(report.topics)
    stored = (
        f"{count:,} topic{'s' if count > 1 else ''} hold{'' if count > 1 else 's'} "
        f"<b>{format_decimal_size(report.stored_bytes)}</b> in {format_count(report.records)}"
        f" records, and <b>{format_decimal_size(report.bytes_per_day)}</b> arrive per day."
    )
    latency, cost = (_profile(report, name) for name in ("latency", "cost"))
    wait = format_duration(cost.wal_interval_seconds or 0)
    return (
        f"{stored} At this rate, S3 costs about <b>{format_dollars(latency.bill.s3)}</b> per month"
        f" if tuned for latency, and <b>{format_dollars(cost.bill.s3)}</b> if producers may"
        f" wait up to {wait}."
    )


def _figures(report: Report) -> str:
    sampled = [topic for topic in report.topics if topic.compression]
    weight = sum(topic.segment_bytes for topic in sampled)
    plain = sum(topic.segment_bytes * (topic.compression or 1) for topic in sampled)
    lag = sum(one.lag for one in report.lags or ())
    figures = {
        "Stored": format_decimal_size(report.stored_bytes),
        "Records": format_count(report.records),
        "Partitions": format_count(sum(topic.partitions for topic in report.topics)),
        "Incoming per day": format_decimal_size(report.bytes_per_day),
        "Compression": format_ratio(plain / weight if weight else None),
        "S3 per month": format_dollars(report.profiles[0].bill.s3),
        **({} if report.lags is None else {"Consumer lag": format_count(lag)}),
    }
    cells = (f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in figures.items())
    return f'<dl class="figures">{"".join(cells)}</dl>'


def _footer(report: Report) -> str:
    brokers = f"{report.brokers} broker{'s' if report.brokers > 1 else ''}"
    return (
        "Sizes are in powers of ten, as S3 is billed. Compression is estimated from samples, growth"
        f" from the timestamps of records over the last week, requests for {brokers}."
        " Transfer within a region is free."
    )


def _profile(report: Report, name: str) -> Profile:
    return next(profile for profile in report.profiles if profile.name == name)


# --- charts ---------------------------------------------------------------------------------------


def _topics(report: Report) -> str:
    sizes = {topic.topic: topic.stored_bytes for topic in report.topics}
    return bars(_greatest(sizes, format_decimal_size, "topics"))


def _greatest(
    values: dict[str, int], format_value: Callable[[float], str], noun: str
) -> list[Mark]:
    """Return the greatest values by name, and the sum of the others."""
    ranked = Counter(values).most_common()
    marks = [Mark(name, value, format_value(value)) for name, value in ranked[:BARS_MAX]]
    if others := ranked[BARS_MAX:]:
        rest = sum(value for _, value in others)
        marks.append(Mark(f"{len(others)} other {noun}", rest, format_value(rest)))
    return marks


def _growth(report: Report) -> str:
    days = list(report.days.items())[-DAYS_MAX:]
    marks = [Mark(day[5:], size_bytes, format_decimal_size(size_bytes)) for day, size_bytes in days]
    return columns("Bytes by day", marks, format_decimal_size) if marks else _empty()


def _sizes(report: Report) -> str:
    if not report.sizes:
        return _empty()
    counts = {sizes.below_bytes: sizes.segments for sizes in report.sizes}
    below, greatest = min(counts), max(counts)
    marks = []
    while below <= greatest:
        count = counts.get(below, 0)
        marks.append(Mark(f"< {show_size(below)}B", count, pluralize(count, "segment")))
        below *= 2
    return columns("Segments by size", marks, format_count)


def _costs(report: Report) -> str:
    return "".join(map(_profile_chart, report.profiles))


def _profile_chart(profile: Profile) -> str:
    name, meaning = _PROFILES[profile.name]
    bill = profile.bill
    marks = [
        Mark("storage", bill.storage, format_dollars(bill.storage)),
        Mark("writes", bill.puts, format_dollars(bill.puts)),
        Mark("reads", bill.gets, format_dollars(bill.gets)),
    ]
    interval = ""
    if profile.wal_interval_seconds is not None:
        interval = (
            f" A broker writes a WAL object of {format_decimal_size(profile.wal_object_bytes)}"
            f" every {format_duration(profile.wal_interval_seconds)}."
        )
    verdict = (
        '<span class="good">within the budget</span>'
        if profile.is_within_budget
        else '<span class="warn">above the budget</span>'
    )
    return (
        f'<div class="profile"><h3><span>{name}</span>'
        f"<span>{format_dollars(bill.s3)}</span></h3>{stack(marks)}"
        f"<p>{meaning.capitalize()}.{interval}"
        f" {format_count(profile.puts_per_day.total)} PUTs per day, {verdict};"
        f" {format_count(profile.gets_per_day)} GETs. With brokers"
        f" {format_dollars(bill.total)}.</p></div>"
    )


def _cost_note(report: Report) -> str:
    expected = sum(topic.expected_bytes for topic in report.topics)
    return (
        f"For {format_decimal_size(expected)}, which retention keeps of the incoming data."
        " The budget is a PUT per 4 MB, and at least 25,000 per day."
    )


def _lags(lags: Sequence[GroupLag] | None) -> str:
    if lags is None:
        return ""
    by_group: Counter[str] = Counter()
    for one in lags:
        by_group[one.group] += one.lag
    content = bars(_greatest(by_group, format_count, "groups")) if by_group else _empty()
    return _card("Consumer lag", "Records that groups have not read yet.", content)


def _damage(damaged: Sequence[str]) -> str:
    if not damaged:
        return ""
    items = "".join(f'<li class="warn">{escape(text)}</li>' for text in damaged)
    note = "Run kafscale spark scrub for details."
    return _card("Damaged segments", note, f"<ul>{items}</ul>")


# --- table ----------------------------------------------------------------------------------------

_COLUMNS: Final = (
    "Topic",
    "Partitions",
    "Records",
    "Stored",
    "In the WAL",
    "Segments",
    "Segment size",
    "Compression",
    "Codecs",
    "Oldest",
    "Newest",
    "Skew",
    "Per day",
    "Retention",
)
_TEXT_COLUMNS: Final = frozenset({"Topic", "Codecs", "Oldest", "Newest", "Retention"})


def _table(topics: Iterable[TopicReport]) -> str:
    head = "".join(f"<th{_class(name)}>{name}</th>" for name in _COLUMNS)
    ranked = sorted(topics, key=lambda topic: -topic.stored_bytes)
    rows = "".join(f"<tr>{_row(topic)}</tr>" for topic in ranked)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(topic: TopicReport) -> str:
    retention = topic.retention_days
    cells = (
        topic.topic,
        f"{topic.partitions:,}",
        f"{topic.records:,}",
        format_decimal_size(topic.stored_bytes),
        format_percent(topic.wal_share),
        f"{topic.segments:,}",
        format_decimal_size(topic.mean_segment_bytes),
        format_ratio(topic.compression),
        ", ".join(f"{codec} {format_percent(share)}" for codec, share in topic.codecs.items())
        or "-",
        format_minute(topic.oldest_ms),
        format_minute(topic.newest_ms),
        format_ratio(topic.skew),
        format_decimal_size(topic.bytes_per_day),
        "unlimited" if retention is None else format_duration(retention * 86_400),
    )
    return "".join(
        f"<td{_class(name)}>{escape(cell)}</td>" for name, cell in zip(_COLUMNS, cells, strict=True)
    )


def _class(column: str) -> str:
    return "" if column in _TEXT_COLUMNS else ' class="number"'


def _card(title: str, note: str, content: str) -> str:
    subtitle = f'<p class="note">{escape(note)}</p>' if note else ""
    return f'<section class="card"><h2>{escape(title)}</h2>{subtitle}{content}</section>'


def _empty() -> str:
    return '<p class="note">No data yet.</p>'
