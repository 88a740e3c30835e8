"""Where reading begins, in words and in offsets."""

import pytest

from kafscale.client.consumer.start_position import Start, offset_of, parse_start

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", Start(offset=0)),
        ("latest", Start()),
        ("17", Start(offset=17)),
        ("-5", Start(offset=-5)),
        ("@1700000000123", Start(time_ms=1_700_000_000_123)),
        ("15m", Start(time_ms=NOW_MS - 900_000)),
        ("2023-11-14T22:13:20.123Z", Start(time_ms=1_700_000_000_123)),
        ("2023-11-14T23:13:20.123+01:00", Start(time_ms=1_700_000_000_123)),
        ("2023-11-14 22:13:20", Start(time_ms=1_700_000_000_000)),
    ],
)
def test_a_place_can_be_said_in_many_ways(text, start):
    assert parse_start(text, now_ms=NOW_MS) == start


@pytest.mark.parametrize("text", ["", "beginning", "@", "1.5", "2023-13-01", "--5"])
def test_what_is_no_place_is_refused_with_what_would_be_one(text):
    with pytest.raises(ValueError, match="is none of earliest, latest, an offset"):
        parse_start(text, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("start", "at_time", "offset"),
    [
        (Start(offset=0), None, 10),
        (Start(offset=15), None, 15),
        (Start(offset=99), None, 20),
        (Start(offset=-3), None, 17),
        (Start(offset=-30), None, 10),
        (Start(), None, 20),
        (Start(time_ms=5), 12, 12),
        (Start(time_ms=5), None, 20),
    ],
)
def test_the_offset_lies_within_what_the_partition_holds(start, at_time, offset):
    assert offset_of(start, 10, 20, at_time) == offset
