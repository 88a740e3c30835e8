"""Sizes of segments on the command line."""

import pytest
import typer

from kafscale.cli.commands.spark.segment_options import read_target
from kafscale.spark.jobs.shared.segment_group import TARGET_BYTES_MAX


def test_a_size_is_read_or_left_to_the_topic():
    assert read_target("") == 0
    assert read_target("500Mi") == 500 * 1024 * 1024
    assert read_target("1Gi") == TARGET_BYTES_MAX


@pytest.mark.parametrize("text", ["large", "0", "2Gi", "-1"])
def test_what_no_segment_can_have_is_refused(text):
    with pytest.raises(typer.BadParameter):
        read_target(text)
