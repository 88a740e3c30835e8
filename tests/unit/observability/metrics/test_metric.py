"""The text format is parsed by Prometheus' own parser."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from kafscale.observability.metrics.histogram import Histogram
from kafscale.observability.metrics.metric import render

finite = st.floats(allow_nan=False)
# The parser splits lines as Python does, at more than a line feed.
words = st.text(st.characters(codec="ascii", exclude_characters="\r\v\f\x1c\x1d\x1e"))


def read(text):
    [family] = text_string_to_metric_families(text)
    return family


@given(st.dictionaries(st.tuples(words, words), finite | st.integers(-(2**50), 2**50)))
def test_numbers_round_trip_with_labels(series):
    family = read(render("kafscale_x", "gauge", "Why.", ("a", "b"), series.items()))
    shown = {(sample.labels["a"], sample.labels["b"]): sample.value for sample in family.samples}
    assert shown == series


@given(st.lists(st.floats(0, 10)))
def test_histogram_buckets_are_cumulative(observed):
    seconds = Histogram((0.5, 1, 5))
    for value in observed:
        seconds.observe(value)
    family = read(render("kafscale_x", "histogram", "Why.", ("a",), [(("b",), seconds)]))
    shown = {(sample.name, sample.labels.get("le")): sample.value for sample in family.samples}
    assert shown == {
        ("kafscale_x_bucket", "0.5"): sum(value <= 0.5 for value in observed),
        ("kafscale_x_bucket", "1"): sum(value <= 1 for value in observed),
        ("kafscale_x_bucket", "5"): sum(value <= 5 for value in observed),
        ("kafscale_x_bucket", "+Inf"): len(observed),
        ("kafscale_x_count", None): len(observed),
        ("kafscale_x_sum", None): seconds.sum,
    }


def test_help_text_is_escaped():
    family = read(render("kafscale_x", "gauge", "One\\two\nthree.", (), [((), 1)]))
    assert family.documentation == "One\\two\nthree."
