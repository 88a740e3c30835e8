"""Output of commands on a terminal: names and records of clients cannot control it."""

import os
import pty
import subprocess
import sys

ATTACK = "a\x1b]0;title\x07\x9b31m\u202eb"
PROGRAM = f"""
from kafscale.cli import output
from kafscale.cli.commands.consume.printer import ConsumeRequest, _Printer
from kafscale.client.consumer.reader import Chunk
from kafscale.client.consumer.start_position import StartPosition
from kafscale.records import Record
name = {ATTACK!r}
output.print_table(["GROUP"], [[name]])
output.print_line(name, (name, "bold"))
request = ConsumeRequest(["orders"], StartPosition(), lambda _, each: each.value, True, None, print)
_Printer(request).print(Chunk(("orders", 0), [Record(0, 0, None, name.encode() + b"\\xff\\n")], 1))
"""


def test_control_characters_are_escaped_on_a_terminal_only():
    terminal, end = pty.openpty()
    run = [sys.executable, "-c", PROGRAM]
    subprocess.run(run, stdout=end, check=True, env=os.environ | {"NO_COLOR": "1"})  # noqa: S603
    os.close(end)
    shown = os.read(terminal, 100_000).decode()
    os.close(terminal)
    escaped = r"a\x1b]0;title\x07\x9b31m\u202eb"
    assert shown.count(escaped) == 4
    assert escaped + r"\xff" in shown
    assert not {"\x07", "\x9b", "\u202e"} & set(shown)
    piped = subprocess.run(run, capture_output=True, check=True).stdout  # noqa: S603
    assert ATTACK.encode() + b"\xff\n" in piped
