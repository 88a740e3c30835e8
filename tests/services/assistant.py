"""An assistant: the protocol's own client, talking to `kafscale mcp` as long as a block lasts.

    with Assistant(broker) as assistant:
        assistant.ask("list_topics")["topics"]

Whoever asks waits; the conversation itself runs in a thread, because the client belongs to the task
that opened it.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self

from mcp import Client, StdioServerParameters, stdio_client

from services.broker import BrokerProcess

PROGRAM = Path(sys.executable).with_name("kafscale")
START_S_MAX = 60
ANSWER_S_MAX = 60

Task = Callable[[Client], Awaitable[Any]]


def environment(broker: BrokerProcess, **settings: str) -> dict[str, str]:
    """The variables of a server that is about a broker."""
    own = {
        "KAFSCALE_BOOTSTRAP_SERVERS": broker.address,
        "KAFSCALE_CONTROL_SERVERS": f"127.0.0.1:{broker.metrics_port}",
        "KAFSCALE_DATA_DIR": str(broker.data),
    }
    return {**os.environ, **own, **settings}


class Assistant:
    """One conversation."""

    def __init__(self, broker: BrokerProcess, *options: str, **settings: str) -> None:
        self._parameters = StdioServerParameters(
            command=str(PROGRAM), args=["mcp", *options], env=environment(broker, **settings)
        )
        self._ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Queue[Any]]] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._converse()))

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.result(START_S_MAX)
        return self

    def __exit__(self, *_: object) -> None:
        self._send(None)
        self._thread.join(START_S_MAX)

    def tools(self) -> dict[str, Any]:
        """What is offered, by name."""
        return {tool.name: tool for tool in self._do(lambda client: client.list_tools()).tools}

    def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a tool tells, which must succeed."""
        answer = self._do(lambda client: client.call_tool(tool, arguments))
        assert not answer.is_error, answer.content
        return dict(answer.structured_content)

    def refusal(self, tool: str, **arguments: Any) -> str:
        """What a tool says that must refuse."""
        answer = self._do(lambda client: client.call_tool(tool, arguments))
        assert answer.is_error, answer.structured_content
        return str(answer.content[0].text)

    def _do(self, task: Task) -> Any:
        outcome: Future[Any] = Future()
        self._send((task, outcome))
        return outcome.result(ANSWER_S_MAX)

    def _send(self, message: Any) -> None:
        loop, questions = self._ready.result(START_S_MAX)
        loop.call_soon_threadsafe(questions.put_nowait, message)

    async def _converse(self) -> None:
        questions: asyncio.Queue[Any] = asyncio.Queue()
        async with Client(stdio_client(self._parameters)) as client:
            self._ready.set_result((asyncio.get_running_loop(), questions))
            while (question := await questions.get()) is not None:
                task, outcome = question
                try:
                    outcome.set_result(await task(client))
                except Exception as error:  # noqa: BLE001 - whoever asked judges it.
                    outcome.set_exception(error)
