"""The page of a report: whole, self-contained, and safe whatever topics are called."""

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from kafscale.spark.jobs.report import page as report_page
from kafscale.spark.jobs.report.charts import Mark, columns, ticks
from kafscale.spark.jobs.report.cost import GB
from kafscale.spark.jobs.report.inventory import DAY_MS, Tally
from kafscale.spark.jobs.report.job import GroupLag, ReportSettings, assemble
from kafscale.spark.jobs.report.wal_activity import WalActivity
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets
from kafscale.spark.source.location import Location

NOW_MS = 20_000 * DAY_MS + DAY_MS // 2
EVIL = '"><script>alert(1)</script>'
VOID = {"meta", "line", "br"}


class Outline(HTMLParser):
    """What a page is made of; complains where tags do not match."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def tally(topic: str, size_bytes: int, *, damaged: str = "") -> Tally:
    made = Tally((topic, 0), segments=3, segment_bytes=size_bytes, records=10**6)
    made.sizes.update({20: 1, 26: 2})
    made.days.update({19_990: size_bytes // 2, 20_000: size_bytes // 2})
    made.damaged += [damaged] if damaged else []
    made.see(NOW_MS)
    return made


def made(*tallies: Tally, lags=None) -> str:
    offset_map = OffsetMap({one.place: PartitionOffsets(*one.place, 0, 0) for one in tallies})
    settings = ReportSettings(location=Location(namespace="production", directory="data"))
    writing = WalActivity(1, 1000.0)
    return report_page.page(
        assemble(settings, offset_map, tallies, writing, now_ms=NOW_MS, lags=lags)
    )


def test_a_page_tells_everything():
    outline = Outline(made(tally("orders", 7 * GB), lags=[GroupLag("billing", "orders", 1234, 1)]))
    for said in ("7 GB", "1 topic holds", "orders", "billing", "1,234", "Set up for latency"):
        assert said in outline.text
    assert outline.tags.count("svg") == 2
    assert "2024-10-04 12:00 UTC" in outline.text


def test_a_page_loads_nothing():
    page = made(tally("orders", GB))
    outline = Outline(page)
    assert not {"script", "link", "img", "iframe"} & set(outline.tags)
    assert not {"src", "href", "onclick", "onload"} & {name for name, _ in outline.attributes}
    assert not re.search(r"https?:|url\(|@import", page)


def test_names_are_never_taken_for_markup():
    page = made(tally(EVIL, GB, damaged=EVIL), lags=[GroupLag(EVIL, EVIL, 1, 1)])
    outline = Outline(page)
    assert "script" not in outline.tags
    assert outline.text.count(EVIL) >= 4


def test_an_empty_namespace_has_a_page():
    outline = Outline(made())
    assert "There is no topic here yet." in outline.text
    assert "svg" not in outline.tags


def test_many_topics_share_a_bar():
    tallies = [tally(f"topic-{number}", GB + number) for number in range(report_page.BARS_MAX + 5)]
    assert "5 other topics" in Outline(made(*tallies)).text


def test_lag_is_left_out_where_nobody_was_asked():
    assert "Consumer lag" not in made(tally("orders", GB))
    assert "Consumer lag" in made(tally("orders", GB), lags=[])


def test_sizes_without_segments_are_gaps_and_no_jumps():
    labels = re.findall(r"<title>&lt; (\S+ \S+): ", made(tally("orders", GB)))
    assert labels == ["1 MiB", "2 MiB", "4 MiB", "8 MiB", "16 MiB", "32 MiB", "64 MiB"]


@pytest.mark.parametrize("count", [1, 2, 30, 60])
def test_labels_below_columns_do_not_meet(count):
    drawn = columns("days", [Mark(f"d{n}", n, str(n)) for n in range(count)], str)
    below = [float(x) for x in re.findall(r'x="([\d.]+)" y="214"', drawn)]
    assert below
    assert f">d{count - 1}<" in drawn
    assert all(right - left >= 60 for left, right in pairwise(below))


@pytest.mark.parametrize("greatest", [1e-3, 0.7, 1, 9, 10, 11, 1e6, 3.3e12])
def test_the_scale_reaches_the_greatest_value(greatest):
    scale = ticks(greatest)
    assert scale[0] == 0
    assert greatest <= scale[-1] < greatest * 2
    assert 3 <= len(scale) <= 6
