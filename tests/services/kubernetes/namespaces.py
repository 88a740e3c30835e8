"""Runs a command in new Linux namespaces: network, hostname, mounts and processes.

    python -m services.kubernetes.namespaces pytest tests/kubernetes

The command is root inside and unprivileged outside. It has a bridge that pods are attached to, and
no other network. All its processes end with it. If the machine does not permit that, the command is
not run, the reason is printed, and the exit status is 0: nothing is wrong with the code under test.
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
"""The address of processes outside of pods, on the bridge."""
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
    """Whether this process runs in such namespaces."""
    return any(name == BRIDGE for _, name in socket.if_nameindex())


def missing() -> str | None:
    """Why namespaces cannot be created, as a sentence; None if they can."""
    for program in ("unshare", "ip"):
        if not shutil.which(program):
            return f"The program `{program}` is not installed."
    completed = subprocess.run(  # noqa: S603 - our own command.
        [*_ENTER, "true"], capture_output=True, text=True, check=False
    )
    if completed.returncode:
        return f"This machine permits no namespaces: {completed.stderr.strip()}"
    return None


def _run_inside(command: Sequence[str]) -> int:
    """As process 1 of the namespaces: set up the network, run the command, reap processes."""
    for step in _NETWORK:
        subprocess.run(step.split(), check=True)  # noqa: S603 - our own command.
    # The command handles interrupts.
    signal.signal(signal.SIGINT, lambda *_: None)
    # The command has its own module path.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    runner = subprocess.Popen(command, env=environment)  # noqa: S603 - the command of the caller.
    while True:
        ended, status = os.wait()
        if ended == runner.pid:
            return os.waitstatus_to_exitcode(status)


def main(arguments: Sequence[str]) -> None:
    """Enter the namespaces, or continue inside."""
    if arguments[0] == _INSIDE:
        sys.exit(_run_inside(arguments[1:]))
    if reason := missing():
        message = f"SKIPPED, nothing is tested: {reason}"
        print(message, file=sys.stderr)  # noqa: T201 - visible in the log.
        return
    os.execvp(_ENTER[0], [*_ENTER, *arguments])  # noqa: S606 - our own command.


if __name__ == "__main__":
    main(sys.argv[1:])
