"""The declarations of MCP tools."""

import asyncio
import re
from pathlib import Path

import pytest
from mcp.server.mcpserver.exceptions import ToolError

from kafscale.admin.connection import ClusterConnections
from kafscale.client.errors import BrokerResponseError
from kafscale.config import Config
from kafscale.errors import KafscaleError
from kafscale.mcp.server import tools
from kafscale.mcp.tool import ITEMS_MAX, bounded, with_error_handling
from kafscale.protocol.error_codes import ErrorCode

PAGE = Path(__file__).parents[3] / "docs" / "mcp.md"
TOOLS = tools(ClusterConnections(Config()), allow_writes=True)


def test_all_tools_are_documented():
    documented = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert documented == [tool.name for tool in TOOLS]


def test_writing_tools_need_permission():
    read_only = tools(ClusterConnections(Config()), allow_writes=False)
    assert read_only == tuple(read_only)
    assert not any(tool.is_write for tool in read_only)
    assert all(tool.is_write for tool in TOOLS[len(read_only) :])
    assert {tool.name for tool in TOOLS if tool.is_destructive} == {
        "delete_topic",
        "delete_group",
        "reset_offsets",
        "abort_transaction",
    }


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_tool_has_title_and_description(tool):
    first, *others = tool.title.split()
    assert first == first.capitalize()
    assert others == [word.lower() for word in others]
    assert tool.call.__doc__


def test_lists_are_bounded():
    assert bounded("items", range(ITEMS_MAX + 5)) == {
        "items": list(range(ITEMS_MAX)),
        "total": ITEMS_MAX + 5,
        "leftOut": 5,
    }
    assert bounded("items", range(3), limit=-1)["items"] == []


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KafscaleError("start a broker"), "start a broker"),
        (BrokerResponseError("topic a", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), "topic a"),
    ],
)
def test_errors_become_tool_errors(error, message):
    async def fail():
        raise error

    with pytest.raises(ToolError, match=message):
        asyncio.run(with_error_handling(fail)())
