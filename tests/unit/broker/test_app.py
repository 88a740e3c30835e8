"""The broker process: when it is ready for clients."""

import asyncio
import json
import stat
from contextlib import AsyncExitStack

from kafscale.broker import app
from kafscale.config import Config
from kafscale.config.sections.broker import Broker
from kafscale.config.sections.s3 import S3
from services.process import free_port

HOST = "127.0.0.1"


async def readiness(port: int) -> dict[str, object]:
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(b"GET /readyz HTTP/1.1\r\nHost: broker\r\nConnection: close\r\n\r\n")
    response = await reader.read()
    writer.close()
    return json.loads(response.partition(b"\r\n\r\n")[2])


def test_broker_is_ready_when_it_accepts_connections_and_not_before(tmp_path):
    metrics_port = free_port()
    config = Config(
        s3=S3(use_memory=True),
        broker=Broker(
            id=1,
            host=HOST,
            port=0,
            metrics_host=HOST,
            metrics_port=metrics_port,
            data_dir=str(tmp_path / "data"),
        ),
    )

    async def scenario():
        seen = []
        async with AsyncExitStack() as stack:
            starting = asyncio.create_task(stack.enter_async_context(app.start(config)))
            while not starting.done():
                try:
                    seen.append(await readiness(metrics_port))
                except OSError:  # It does not listen yet.
                    await asyncio.sleep(0.001)
            await starting
            assert await readiness(metrics_port) == {"ready": True, "reasons": {}, "warnings": {}}
        return seen

    # At the end of the start, nothing else is missing.
    waiting = {
        "ready": False,
        "reasons": {"listeners": "connections are not accepted"},
        "warnings": {},
    }
    assert waiting in asyncio.run(scenario())
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
