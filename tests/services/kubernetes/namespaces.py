"""A room of its own on this machine: a network, a hostname, mounts and processes, gone afterwards.

    python -m services.kubernetes.namespaces pytest tests/kubernetes

runs a command in new Linux namespaces, as a root who is nobody outside: there, it has a bridge that
pods can be plugged into, and no way to any other network. Whatever it leaves behind ends with it.
Where the machine does not permit that, the command is not run, a sentence says why, and that is
success: there is nothing wrong with what was to be tested.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence

BRIDGE = "pods"
GATEWAY = "10.244.0.1"
"""The address of whoever is not in a pod, on the bridge."""
PREFIX_LENGTH = 16
SERVICE_RANGE = "10.96.0.0/16"
"""The addresses of Services."""

_INSIDE = "--inside"
_ENTER = (
    "unshare",
    "--map-root-user",
    "--net",
    "--mount",
    "--uts",
    "--ipc",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    sys.executable,
    "-P",
    __file__,
    _INSIDE,
)
_NETWORK = (
    "ip link set lo up",
    f"ip link add {BRIDGE} type bridge",
    f"ip address add {GATEWAY}/{PREFIX_LENGTH} dev {BRIDGE}",
    f"ip link set {BRIDGE} up",
)


def is_inside() -> bool:
    """Whether this process is in such a room."""
    return any(name == BRIDGE for _, name in socket.if_nameindex())


def missing() -> str | None:
    """Why there can be no such room on this machine, as a sentence."""
    for program in ("unshare", "ip"):
        if not shutil.which(program):
            return f"There is no program `{program}` here."
    tried = subprocess.run(  # noqa: S603 - our own command.
        [*_ENTER, "true"], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        return f"This machine permits no namespaces: {tried.stderr.strip()}"
    return None


def _settle(command: Sequence[str]) -> int:
    """As the first process of the room: make it habitable, and see off whoever dies in there."""
    for step in _NETWORK:
        subprocess.run(step.split(), check=True)  # noqa: S603 - our own command.
    # It is for the command to decide what becomes of a run that is interrupted.
    signal.signal(signal.SIGINT, lambda *_: None)
    # What is run there finds its modules by itself.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    runner = subprocess.Popen(command, env=environment)  # noqa: S603 - what was asked for.
    while True:
        ended, status = os.wait()
        if ended == runner.pid:
            return os.waitstatus_to_exitcode(status)


def main(arguments: Sequence[str]) -> None:
    """Enter, or go on inside."""
    if arguments[0] == _INSIDE:
        sys.exit(_settle(arguments[1:]))
    if reason := missing():
        sentence = f"SKIPPED, nothing is tested: {reason}"
        print(sentence, file=sys.stderr)  # noqa: T201 - whoever reads the log has to see it.
        return
    os.execvp(_ENTER[0], [*_ENTER, *arguments])  # noqa: S606 - our own command.


if __name__ == "__main__":
    main(sys.argv[1:])
