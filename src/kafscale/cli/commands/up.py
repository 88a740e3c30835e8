"""`kafscale up`: a broker and the console, as children of one command.

The law: they live and die together. When one ends, the other is stopped; Ctrl-C stops both in good
order; and the command ends with what the first of them ended with.
"""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import typer

from kafscale.cli.commands.config import ConfigFile, effective, environment
from kafscale.cli.output import print_line
from kafscale.config import Config
from kafscale.config.model import BY_PATH, DEFAULT
from kafscale.errors import KafscaleError

START_SECONDS_MAX: Final = 90.0
STOP_SECONDS_MAX: Final = 40.0
LISTENING: Final = " listening on "


def up(config: ConfigFile = None) -> None:
    """Run a broker and the console together until Ctrl-C: a whole Kafscale on this machine.

    Logs show warnings only; KAFSCALE_LOG_LEVEL=info shows more.
    """
    code = asyncio.run(_run(effective(config), config))
    if code:
        raise typer.Exit(code)


async def _run(config: Config, file: Path | None) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    children: list[Process] = []
    stopping = asyncio.create_task(stop.wait())
    serving = asyncio.create_task(_serve(config, file, children))
    try:
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return serving.result() if serving.done() else 0
    finally:
        for task in (serving, stopping):
            task.cancel()
        await asyncio.gather(serving, stopping, return_exceptions=True)
        await _stop(children)


async def _serve(config: Config, file: Path | None, children: list[Process]) -> int:
    """Start both, say where they are, and wait until one ends: the code of that one."""
    logs = {"logging.level": "warn", "logging.format": "text"}
    kafka = _reachable(await _started("broker", file, _unless_set(config, logs), children))
    ways = {
        "client.bootstrapServers": kafka,
        "client.controlServers": f"localhost:{config.broker.metrics_port}",
    }
    console = await _started("console", file, _unless_set(config, logs | ways), children)
    for label, value in _summary(config, kafka, console):
        print_line((f"{label:<9}", "dim"), value)
    sys.stdout.flush()
    ends = [asyncio.create_task(child.wait()) for child in children]
    done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    code = done.pop().result()
    return code if code >= 0 else 128 - code  # As shells tell of signals.


async def _started(
    command: str, file: Path | None, more: Mapping[str, str], children: list[Process]
) -> str:
    """Start a child, and wait until it says where it listens: there."""
    options = ("--config", str(file)) if file else ()
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kafscale", command, *options, env=environment(more), stdout=PIPE
    )
    children.append(child)
    assert child.stdout is not None
    try:
        async with asyncio.timeout(START_SECONDS_MAX):
            line = (await child.stdout.readline()).decode()
    except TimeoutError:
        line = ""
    if LISTENING not in line:
        raise KafscaleError(f"the {command} did not start; what it says above tells why")
    return line.partition(LISTENING)[2].split()[0]


async def _stop(children: Sequence[Process]) -> None:
    """Stop those that still run: first who asks, then who answers."""
    for child in reversed(children):
        if child.returncode is not None:
            continue
        child.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await child.wait()
        except TimeoutError:
            child.kill()
            await child.wait()


def _unless_set(config: Config, values: Mapping[str, str]) -> dict[str, str]:
    """Variables for those of the settings about which nobody has said anything."""
    return {
        BY_PATH[path].variables[0]: value
        for path, value in values.items()
        if config.origin(path) == DEFAULT
    }


def _reachable(address: str) -> str:
    """Where clients on this machine find what listens on all addresses."""
    host, _, port = address.rpartition(":")
    return f"localhost:{port}" if host in {"0.0.0.0", "[::]"} else address  # noqa: S104


def _summary(config: Config, kafka: str, console: str) -> list[tuple[str, str]]:
    port, ui = config.broker.metrics_port, config.ui
    lines = [
        ("kafka", kafka),
        ("metrics", f"http://localhost:{port}/metrics"),
        ("console", console),
    ]
    if ui.username and ui.password:
        lines.append(("sign in", f"as {ui.username}"))
    else:
        lines += [
            ("sign in", "nobody can: KAFSCALE_UI_USERNAME and KAFSCALE_UI_PASSWORD are not set."),
            ("", "Set both, to a name and a password of your own, and start again."),
        ]
    return [*lines, ("stop", "with Ctrl-C")]
