"""Start positions: parsing and resolution to offsets."""

import pytest

from kafscale.client.consumer.start_position import StartPosition, parse_start, resolve_offset

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", StartPosition(offset=0)),
        ("latest", StartPosition()),
        ("17", StartPosition(offset=17)),
        ("-5", StartPosition(offset=-5)),
        ("@1700000000123", StartPosition(time_ms=1_700_000_000_123)),
        ("15m", StartPosition(time_ms=NOW_MS - 900_000)),
        ("2023-11-14T22:13:20.123Z", StartPosition(time_ms=1_700_000_000_123)),
        ("2023-11-14T23:13:20.123+01:00", StartPosition(time_ms=1_700_000_000_123)),
        ("2023-11-14 22:13:20", StartPosition(time_ms=1_700_000_000_000)),
    ],
)
def test_start_positions_are_parsed(text, start):
    assert parse_start(text, now_ms=NOW_MS) == start


@pytest.mark.parametrize("text", ["", "beginning", "@", "1.5", "2023-13-01", "--5"])
def test_invalid_start_position_is_rejected(text):
    with pytest.raises(ValueError, match="is not a position: expected earliest, latest, an offset"):
        parse_start(text, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("start", "at_time", "offset"),
    [
        (StartPosition(offset=0), None, 10),
        (StartPosition(offset=15), None, 15),
        (StartPosition(offset=99), None, 20),
        (StartPosition(offset=-3), None, 17),
        (StartPosition(offset=-30), None, 10),
        (StartPosition(), None, 20),
        (StartPosition(time_ms=5), 12, 12),
        (StartPosition(time_ms=5), None, 20),
    ],
)
def test_offset_is_limited_to_the_partition(start, at_time, offset):
    assert resolve_offset(start, 10, 20, at_time) == offset
