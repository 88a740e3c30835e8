"""What a classic group does, told by scripts that can be read like a protocol of a meeting."""

import pytest

from unit.groups.classic.script import SCRIPTS, rewritten


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_group_does_what_the_script_says(path):
    script = path.read_text()
    assert rewritten(script) == script


def test_there_are_scripts():
    assert len(SCRIPTS) > 10
