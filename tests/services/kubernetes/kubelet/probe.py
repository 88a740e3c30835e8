"""Whether a container is well, by what its pod says how to find out.

While it is not well, it is asked more often than its period says, for tests to be quick; but only a
whole period without any success counts as a failure.
"""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

Manifest = Mapping[str, Any]
Check = Callable[[], Awaitable[bool]]
Verdicts = AsyncIterator[bool]
Execute = Callable[[Sequence[str]], Awaitable[int]]

EAGER_S = 0.2
"""Between questions to somebody who is not well."""


async def verdicts(probe: Manifest, check: Check, *, is_well: bool) -> Verdicts:
    """Whether it is well, whenever as many answers in a row say so as are needed."""
    needed = {True: probe.get("successThreshold", 1), False: probe.get("failureThreshold", 3)}
    await asyncio.sleep(probe.get("initialDelaySeconds", 0))
    last, in_row = is_well, 0
    while True:
        ends_s = time.monotonic() + probe.get("periodSeconds", 10)
        answer = await _answer(probe, check)
        while not answer and not is_well and time.monotonic() + EAGER_S < ends_s:
            await asyncio.sleep(EAGER_S)
            answer = await _answer(probe, check)
        in_row = in_row + 1 if answer == last else 1
        last = answer
        if in_row == needed[answer]:
            is_well = answer
            yield is_well
        await asyncio.sleep(ends_s - time.monotonic())


async def ask(handler: Manifest, address: str, ports: Mapping[str, int], execute: Execute) -> bool:
    """Do once what a probe or a hook says; whether that went well."""
    if "exec" in handler:
        return await execute(handler["exec"]["command"]) == 0
    if "sleep" in handler:
        await asyncio.sleep(handler["sleep"]["seconds"])
        return True
    wanted = handler.get("httpGet") or handler.get("tcpSocket")
    assert wanted is not None, f"nothing is known here of {handler}"
    host = wanted.get("host") or address
    port = wanted["port"] if isinstance(wanted["port"], int) else ports[wanted["port"]]
    try:
        if "httpGet" in handler:
            return 200 <= await _status(host, port, wanted) < 400
        _, writer = await asyncio.open_connection(host, port)
    except (OSError, ValueError, IndexError):
        return False
    writer.close()
    return True


async def _answer(probe: Manifest, check: Check) -> bool:
    try:
        async with asyncio.timeout(probe.get("timeoutSeconds", 1)):
            return await check()
    except TimeoutError:
        return False


async def _status(host: str, port: int, wanted: Manifest) -> int:
    tls = ssl._create_unverified_context() if wanted.get("scheme") == "HTTPS" else None  # noqa: S323
    reader, writer = await asyncio.open_connection(host, port, ssl=tls)
    try:
        headers = {"Host": f"{host}:{port}", "Connection": "close", "User-Agent": "kube-probe/1"}
        headers |= {each["name"]: each["value"] for each in wanted.get("httpHeaders", ())}
        lines = [
            f"GET {wanted.get('path', '/')} HTTP/1.1",
            *(f"{k}: {headers[k]}" for k in headers),
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        return int((await reader.readline()).split()[1])
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
