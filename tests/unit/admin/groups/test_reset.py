"""Reset targets and how they are parsed."""

import pytest

from kafscale.admin.groups.reset import (
    PartitionOffsets,
    ResetTarget,
    TargetKind,
    parse_age,
    parse_topic,
    resolve_offset,
)

OFFSETS = PartitionOffsets(start=10, end=20, committed=15)


@pytest.mark.parametrize(
    ("target", "partition", "offset", "note"),
    [
        (ResetTarget(TargetKind.EARLIEST), OFFSETS, 10, ""),
        (ResetTarget(TargetKind.LATEST), OFFSETS, 20, ""),
        (ResetTarget(TargetKind.CURRENT), OFFSETS, 15, ""),
        (ResetTarget(TargetKind.CURRENT), OFFSETS._replace(committed=3), 3, ""),
        (
            ResetTarget(TargetKind.CURRENT),
            OFFSETS._replace(committed=None),
            20,
            "nothing was committed",
        ),
        (ResetTarget(TargetKind.OFFSET, 12), OFFSETS, 12, ""),
        (ResetTarget(TargetKind.OFFSET, 10), OFFSETS, 10, ""),
        (ResetTarget(TargetKind.OFFSET, 20), OFFSETS, 20, ""),
        (ResetTarget(TargetKind.OFFSET, 9), OFFSETS, 10, "9 is before the start"),
        (ResetTarget(TargetKind.OFFSET, 21), OFFSETS, 20, "21 is after the end"),
        (ResetTarget(TargetKind.SHIFT, 2), OFFSETS, 17, ""),
        (ResetTarget(TargetKind.SHIFT, -2), OFFSETS, 13, ""),
        (ResetTarget(TargetKind.SHIFT, -20), OFFSETS, 10, "-5 is before the start"),
        (ResetTarget(TargetKind.SHIFT, 6), OFFSETS, 20, "21 is after the end"),
        (ResetTarget(TargetKind.TIME, 99), OFFSETS._replace(at_time=11), 11, ""),
        (ResetTarget(TargetKind.TIME, 99), OFFSETS, 20, "no record is at or after that time"),
    ],
)
def test_target_resolves_to_an_offset_of_the_log(target, partition, offset, note):
    assert resolve_offset(target, partition) == (offset, note)


def test_shift_needs_a_committed_offset():
    with pytest.raises(ValueError, match="nothing is committed"):
        resolve_offset(ResetTarget(TargetKind.SHIFT, 1), OFFSETS._replace(committed=None))


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
def test_parse_age_accepts_both_formats(text, milliseconds):
    assert parse_age(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "P1H", "PT1D", "1", "-PT1H", "yesterday"])
def test_parse_age_rejects_other_texts(text):
    with pytest.raises(ValueError, match="is not a duration, such as"):
        parse_age(text)


@pytest.mark.parametrize("text", ["", ":1", "orders:", "orders:1,", "orders:a", "orders:-1"])
def test_parse_topic_rejects_other_texts(text):
    with pytest.raises(ValueError, match="is not a topic, such as"):
        parse_topic(text)
