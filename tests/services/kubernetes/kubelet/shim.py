"""The last step before a pod's own program: a process makes itself a room, and becomes the program.

    python shim.py sandbox NAME          is a pod: its network, its host's name; ends with its input
    python shim.py container FD < ORDER  is a container in there, by the `Order` of `filesystem`

It runs by itself, with nothing but the standard library, as it has to be quick. A container is
process 1 of a space of its own, so that nothing of it outlives it; a sandbox or container whose
kubelet is gone is killed. On `FD` a container says its process's number and then, if it cannot be
started, why; the end of that is the start of the program.
"""

import ctypes
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

CLONE_NEWNS = 0x20000
CLONE_NEWUTS = 0x4000000
CLONE_NEWIPC = 0x8000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_REMOUNT = 0x20
MS_RDONLY = 0x1
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 0x2
MOUNT_ATTR_RDONLY = 0x1
AT_FDCWD = -100
AT_RECURSIVE = 0x8000
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}[os.uname().machine]
SYS_MOUNT_SETATTR = 442
PR_SET_PDEATHSIG = 1
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
CAPABILITY_LAST = 40
SIGNALLED = 128
"""What shells add to the number of the signal that ended a process."""

_libc = ctypes.CDLL(None, use_errno=True)


def sandbox(name: str) -> None:
    """Be a pod without containers, until the input ends."""
    _call("unshare", CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC)
    socket.sethostname(name)
    os.write(sys.stdout.fileno(), b"ready\n")
    sys.stdin.read()


def container(told: int) -> int:
    """Run a program to its end; how that was, as shells say it."""
    order = json.load(sys.stdin)
    for space in ("net", "uts", "ipc"):
        with Path(f"/proc/{order['sandbox']}/ns/{space}").open() as file:
            _call("setns", file.fileno(), 0)
    _call("unshare", CLONE_NEWNS | CLONE_NEWPID)
    process = os.fork()
    if process == 0:
        _become(order, told)
    os.write(told, f"{process}\n".encode())
    os.close(told)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # They are for the program.
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else SIGNALLED - code


def _become(order: dict[str, Any], told: int) -> None:
    try:
        _die_with_parent()
        os.set_inheritable(told, False)
        _furnish(order)
        os.chdir(order["directory"])
        if order["gives_up_privileges"]:
            _call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            for capability in range(CAPABILITY_LAST + 1):
                _call("prctl", PR_CAPBSET_DROP, capability, 0, 0, 0)
        os.execvpe(order["command"][0], order["command"], order["environment"])  # noqa: S606
    except OSError as error:
        os.write(told, str(error).encode())
    finally:
        os._exit(SIGNALLED - 1)  # As shells say that there is no such program.


def _furnish(order: dict[str, Any]) -> None:
    """Make the root that was ordered, and forget the machine's."""
    root = order["root"]
    _mount("none", "/", flags=MS_REC | MS_PRIVATE)
    _mount("tmpfs", root, "tmpfs", data="mode=755")
    for path in order["directories"]:
        Path(root + path).mkdir(parents=True, exist_ok=True)
    for path, target in order["links"].items():
        Path(root + path).symlink_to(target)
    Path(root, "tmp").chmod(0o1777)
    for path, text in order["files"].items():
        Path(root + path).write_text(text)
    # The outer ones first: a volume at `/tmp` does not hide the project, wherever it is.
    for mount in sorted(order["mounts"], key=lambda each: each["target"].count("/")):
        _bind(mount["source"], root + mount["target"], is_read_only=mount["is_read_only"])
    _mount("proc", root + "/proc", "proc")
    _mount("tmpfs", root + "/dev/shm", "tmpfs")  # noqa: S108 - not the machine's.
    if order["is_read_only"]:
        _mount("none", root, flags=MS_REMOUNT | MS_BIND | MS_RDONLY)
    os.chdir(root)
    _syscall(SYS_PIVOT_ROOT, b".", b".")
    _call("umount2", b".", MNT_DETACH)


def _bind(source: str, target: str, *, is_read_only: bool) -> None:
    place = Path(target)
    if Path(source).is_dir():
        place.mkdir(parents=True, exist_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    _mount(source, target, flags=MS_BIND | MS_REC)
    if is_read_only:
        attributes = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY, 0, 0, 0)
        size = ctypes.sizeof(attributes)
        where = target.encode()
        _syscall(SYS_MOUNT_SETATTR, AT_FDCWD, where, AT_RECURSIVE, attributes, size)


def _mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    _call("mount", source.encode(), target.encode(), kind.encode(), flags, data.encode())


def _die_with_parent() -> None:
    _call("prctl", PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _syscall(number: int, *arguments: object) -> None:
    _call("syscall", number, *arguments)


def _call(name: str, *arguments: object) -> None:
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    if getattr(_libc, name)(*words) == -1:
        number = ctypes.get_errno()
        shown = " ".join(each.decode() for each in arguments if isinstance(each, bytes))
        raise OSError(number, f"{name} {shown}: {os.strerror(number)}")


def main() -> None:
    _die_with_parent()
    role, subject = sys.argv[1:]
    if role == "sandbox":
        sandbox(subject)
    else:
        sys.exit(container(int(subject)))


if __name__ == "__main__":
    main()
