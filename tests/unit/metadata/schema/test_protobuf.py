import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.metadata.schema.protobuf import TIME_MS_MAX, TIME_MS_MIN, format_time, parse_time


@given(st.integers(0, TIME_MS_MAX))
def test_time_round_trips(time_ms):
    assert parse_time(format_time(time_ms)) == time_ms


def test_times_are_limited_to_the_years_1_to_9999():
    assert format_time(TIME_MS_MAX) == format_time(2**63 - 1) == "9999-12-31T23:59:59.999Z"
    assert format_time(TIME_MS_MIN) == format_time(-(2**63)) == "0001-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2025-01-15T10:30:00Z", 1_736_937_000_000),
        ("2025-01-15T10:30:00.5Z", 1_736_937_000_500),
        ("2025-01-15T12:30:00+02:00", 1_736_937_000_000),
        ("2025-01-15T10:30:00.123456789Z", 1_736_937_000_123),
    ],
)
def test_times_of_other_writers_are_parsed(text, time_ms):
    assert parse_time(text) == time_ms


@pytest.mark.parametrize("text", ["", "yesterday", "2025-01-15T10:30:00", "1736937000"])
def test_invalid_time_is_rejected(text):
    with pytest.raises(ValueError, match=r"."):
        parse_time(text)
