"""Parsing and formatting of sizes and durations."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.text import units


def test_module_examples_hold():
    results = doctest.testmod(units)
    assert results.attempted >= 4
    assert results.failed == 0


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("104857600", 104857600),
        ("1Ki", 1024),
        ("256Mi", 256 * 1024**2),
        ("2Gi", 2 * 1024**3),
        ("1Ti", 1024**4),
        ("5MiB", 5 * 1024**2),
        ("4 MB", 4_000_000),
        ("100MB", 100_000_000),
        ("100M", 100_000_000),
        ("1k", 1000),
        ("1K", 1000),
        ("2GB", 2 * 1000**3),
        ("512B", 512),
        ("1.5Gi", 3 * 1024**3 // 2),
        (" 7 ", 7),
    ],
)
def test_size_units_with_i_are_powers_of_1024(text, size):
    assert units.parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        "B",
        "Mi",
        "-1",
        "1e3",
        "1mb",
        "1m",
        "1Xi",
        "1 M i",
        "0x10",
        "1,5Gi",
        "٣",
        "1" * 30,
        "1.1",
    ],
)
def test_invalid_sizes_are_rejected(text):
    with pytest.raises(ValueError, match="is not a"):
        units.parse_size(text)


@given(st.integers(min_value=0, max_value=10**18 - 1))
def test_formatted_size_parses_to_the_same(size):
    assert units.parse_size(units.show_size(size)) == size


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("500ms", 500),
        ("30s", 30_000),
        ("5m", 300_000),
        ("2h", 7_200_000),
        ("1m30s", 90_000),
        ("1.5s", 1500),
        ("10 s", 10_000),
    ],
)
def test_duration_is_the_sum_of_its_parts(text, milliseconds):
    assert units.parse_duration(text) == milliseconds


def test_bare_number_needs_a_default_unit():
    assert units.parse_duration("60", bare_unit="s") == 60_000
    assert units.parse_duration("60", bare_unit="ms") == 60
    with pytest.raises(ValueError, match="has no unit"):
        units.parse_duration("60")


@pytest.mark.parametrize("text", ["", "s", "-1s", "1 day", "1S", "1s2", "0.5ms", "fast", "9" * 40])
def test_invalid_durations_are_rejected(text):
    with pytest.raises(ValueError, match="is not a"):
        units.parse_duration(text)


@given(st.integers(min_value=1, max_value=10**12))
def test_formatted_duration_parses_to_the_same(milliseconds):
    assert units.parse_duration(units.show_duration(milliseconds)) == milliseconds
