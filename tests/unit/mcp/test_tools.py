"""Tools are documented, bounded and honest about what they do."""

import asyncio
import re
from pathlib import Path

import pytest
from mcp.server.mcpserver.exceptions import ToolError

from kafscale.admin.connection import Reach
from kafscale.client.errors import AnsweredError
from kafscale.config import Config
from kafscale.errors import KafscaleError
from kafscale.mcp.server import tools
from kafscale.mcp.tool import ITEMS_MAX, bounded, guarded
from kafscale.protocol.error_codes import ErrorCode

PAGE = Path(__file__).parents[3] / "docs" / "mcp.md"
TOOLS = tools(Reach(Config()), allow_writes=True)


def test_the_page_tells_of_every_tool():
    told = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert told == [tool.name for tool in TOOLS]


def test_those_that_change_something_come_only_where_that_is_allowed():
    looking = tools(Reach(Config()), allow_writes=False)
    assert looking == tuple(looking)
    assert not any(tool.changes for tool in looking)
    assert all(tool.changes for tool in TOOLS[len(looking) :])
    assert {tool.name for tool in TOOLS if tool.destroys} == {
        "delete_topic",
        "delete_group",
        "reset_offsets",
    }


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_tool_says_what_it_is_for(tool):
    assert tool.title
    assert tool.call.__doc__


def test_a_list_is_cut_and_says_so():
    assert bounded("items", range(ITEMS_MAX + 5)) == {
        "items": list(range(ITEMS_MAX)),
        "total": ITEMS_MAX + 5,
        "leftOut": 5,
    }
    assert bounded("items", range(3), limit=-1)["items"] == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KafscaleError("start a broker"), "start a broker"),
        (AnsweredError("topic a", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), "topic a"),
    ],
)
def test_errors_of_ours_become_words_for_an_assistant(error, words):
    async def fail():
        raise error

    with pytest.raises(ToolError, match=words):
        asyncio.run(guarded(fail)())
