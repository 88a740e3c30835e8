"""Where a reset leads to, and how it is written."""

import pytest

from kafscale.admin.groups.reset_aim import (
    Aim,
    Kind,
    Partition,
    destination,
    parse_ago,
    parse_topic,
)

HELD = Partition(start=10, end=20, committed=15)


@pytest.mark.parametrize(
    ("aim", "partition", "offset", "note"),
    [
        (Aim(Kind.EARLIEST), HELD, 10, ""),
        (Aim(Kind.LATEST), HELD, 20, ""),
        (Aim(Kind.CURRENT), HELD, 15, ""),
        (Aim(Kind.CURRENT), HELD._replace(committed=3), 3, ""),
        (Aim(Kind.CURRENT), HELD._replace(committed=None), 20, "nothing was committed"),
        (Aim(Kind.OFFSET, 12), HELD, 12, ""),
        (Aim(Kind.OFFSET, 10), HELD, 10, ""),
        (Aim(Kind.OFFSET, 20), HELD, 20, ""),
        (Aim(Kind.OFFSET, 9), HELD, 10, "9 lies before the start"),
        (Aim(Kind.OFFSET, 21), HELD, 20, "21 lies behind the end"),
        (Aim(Kind.SHIFT, 2), HELD, 17, ""),
        (Aim(Kind.SHIFT, -2), HELD, 13, ""),
        (Aim(Kind.SHIFT, -20), HELD, 10, "-5 lies before the start"),
        (Aim(Kind.SHIFT, 6), HELD, 20, "21 lies behind the end"),
        (Aim(Kind.TIME, 99), HELD._replace(at_time=11), 11, ""),
        (Aim(Kind.TIME, 99), HELD, 20, "no record is that young"),
    ],
)
def test_every_aim_leads_to_an_offset_that_can_be_read(aim, partition, offset, note):
    assert destination(aim, partition) == (offset, note)


def test_a_shift_needs_something_to_begin_with():
    with pytest.raises(ValueError, match="nothing is committed"):
        destination(Aim(Kind.SHIFT, 1), HELD._replace(committed=None))


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT1H", 3_600_000),
        ("P2DT3H4M5S", ((2 * 24 + 3) * 60 + 4) * 60_000 + 5_000),
        ("pt30s", 30_000),
        ("P7D", 7 * 86_400_000),
        ("1h30m", 5_400_000),
        ("250ms", 250),
    ],
)
def test_a_duration_is_written_in_either_way(text, milliseconds):
    assert parse_ago(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "P1H", "PT1D", "1", "-PT1H", "yesterday"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="is not a duration, such as"):
        parse_ago(text)


@pytest.mark.parametrize("text", ["", ":1", "orders:", "orders:1,", "orders:a", "orders:-1"])
def test_what_is_no_topic_is_refused(text):
    with pytest.raises(ValueError, match="is not a topic, such as"):
        parse_topic(text)
