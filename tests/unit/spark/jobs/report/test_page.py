"""The HTML page of a report is well-formed, self-contained and escapes all names."""

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from kafscale.spark.jobs.report import page as report_page
from kafscale.spark.jobs.report.charts import Mark, columns, ticks
from kafscale.spark.jobs.report.cost import GB
from kafscale.spark.jobs.report.inventory import DAY_MS, PartitionUsage, WalActivity
from kafscale.spark.jobs.report.job import GroupLag, ReportSettings, assemble
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets
from kafscale.spark.read.location import Location

NOW_MS = 20_000 * DAY_MS + DAY_MS // 2
SCRIPT = '"><script>alert(1)</script>'
VOID = {"meta", "line", "br"}


class Outline(HTMLParser):
    """The tags, attributes and text of a page; asserts that tags match."""

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


def usage_of(topic: str, size_bytes: int, *, damaged: str = "") -> PartitionUsage:
    usage = PartitionUsage((topic, 0), segments=3, segment_bytes=size_bytes, records=10**6)
    usage.sizes.update({20: 1, 26: 2})
    usage.days.update({19_990: size_bytes // 2, 20_000: size_bytes // 2})
    usage.damaged += [damaged] if damaged else []
    usage.add_timestamp(NOW_MS)
    return usage


def render(*usages: PartitionUsage, lags=None) -> str:
    keys = [usage.topic_partition for usage in usages]
    offset_map = OffsetMap({key: PartitionOffsets(*key, 0, 0) for key in keys})
    settings = ReportSettings(location=Location(namespace="production", directory="data"))
    activity = WalActivity(1, 1000.0)
    return report_page.page(
        assemble(settings, offset_map, usages, activity, now_ms=NOW_MS, lags=lags)
    )


def test_page_has_the_key_figures():
    outline = Outline(
        render(usage_of("orders", 7 * GB), lags=[GroupLag("billing", "orders", 1234, 1)])
    )
    for text in ("7 GB", "1 topic holds", "orders", "billing", "1,234", "Tuned for latency"):
        assert text in outline.text
    assert outline.tags.count("svg") == 2
    assert "2024-10-04 12:00 UTC" in outline.text


def test_page_loads_no_resources():
    page = render(usage_of("orders", GB))
    outline = Outline(page)
    assert not {"script", "link", "img", "iframe"} & set(outline.tags)
    assert not {"src", "href", "onclick", "onload"} & {name for name, _ in outline.attributes}
    assert not re.search(r"https?:|url\(|@import", page)


def test_names_are_escaped():
    page = render(usage_of(SCRIPT, GB, damaged=SCRIPT), lags=[GroupLag(SCRIPT, SCRIPT, 1, 1)])
    outline = Outline(page)
    assert "script" not in outline.tags
    assert outline.text.count(SCRIPT) >= 4


def test_page_of_an_empty_namespace():
    outline = Outline(render())
    assert "There are no topics." in outline.text
    assert "svg" not in outline.tags


def test_small_topics_are_summed_up_in_one_bar():
    usages = [
        usage_of(f"topic-{number}", GB + number) for number in range(report_page.BARS_MAX + 5)
    ]
    assert "5 other topics" in Outline(render(*usages)).text


def test_lag_is_omitted_if_no_cluster_was_queried():
    assert "Consumer lag" not in render(usage_of("orders", GB))
    assert "Consumer lag" in render(usage_of("orders", GB), lags=[])


def test_size_classes_without_segments_are_shown():
    labels = re.findall(r"<title>&lt; (\S+): ", render(usage_of("orders", GB)))
    assert labels == ["1MiB", "2MiB", "4MiB", "8MiB", "16MiB", "32MiB", "64MiB"]


@pytest.mark.parametrize("count", [1, 2, 30, 60])
def test_labels_below_columns_do_not_overlap(count):
    drawn = columns("days", [Mark(f"d{n}", n, str(n)) for n in range(count)], str)
    below = [float(x) for x in re.findall(r'x="([\d.]+)" y="214"', drawn)]
    assert below
    assert f">d{count - 1}<" in drawn
    assert all(right - left >= 60 for left, right in pairwise(below))


@pytest.mark.parametrize("greatest", [1e-3, 0.7, 1, 9, 10, 11, 1e6, 3.3e12])
def test_scale_reaches_the_greatest_value(greatest):
    scale = ticks(greatest)
    assert scale[0] == 0
    assert greatest <= scale[-1] < greatest * 2
    assert 3 <= len(scale) <= 6
