"""Creates the namespaces of a pod or container, then becomes its program.

    python shim.py sandbox NAME          a pod: its network and host name; ends with its input
    python shim.py container FD < SPEC   a container in there, from a `ContainerSpec` in JSON

It uses only the standard library, to start fast. A container is process 1 of its own pid namespace,
so that no process outlives it; sandboxes and containers are killed when the kubelet is gone. A
container writes its process id to `FD` and, if it cannot be started, the error; the end of that is
the start of the program.
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


def container(status_pipe: int) -> int:
    """Run a program until it exits; return its exit code, as shells report it."""
    container_spec = json.load(sys.stdin)
    for space in ("net", "uts", "ipc"):
        with Path(f"/proc/{container_spec['sandbox']}/ns/{space}").open() as file:
            _call("setns", file.fileno(), 0)
    _call("unshare", CLONE_NEWNS | CLONE_NEWPID)
    process = os.fork()
    if process == 0:
        _exec(container_spec, status_pipe)
    os.write(status_pipe, f"{process}\n".encode())
    os.close(status_pipe)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # The program handles them.
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else SIGNALLED - code


def _exec(container_spec: dict[str, Any], status_pipe: int) -> None:
    try:
        _die_with_parent()
        os.set_inheritable(status_pipe, False)
        _mount_root(container_spec)
        os.chdir(container_spec["directory"])
        if container_spec["drops_capabilities"]:
            _call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            for capability in range(CAPABILITY_LAST + 1):
                _call("prctl", PR_CAPBSET_DROP, capability, 0, 0, 0)
        command = container_spec["command"]
        os.execvpe(command[0], command, container_spec["environment"])  # noqa: S606
    except OSError as error:
        os.write(status_pipe, str(error).encode())
    finally:
        os._exit(SIGNALLED - 1)  # The exit code of shells for a missing program.


def _mount_root(container_spec: dict[str, Any]) -> None:
    """Mount the root of the spec, and detach the machine's."""
    root = container_spec["root"]
    _mount("none", "/", flags=MS_REC | MS_PRIVATE)
    _mount("tmpfs", root, "tmpfs", data="mode=755")
    for path in container_spec["directories"]:
        Path(root + path).mkdir(parents=True, exist_ok=True)
    for path, target in container_spec["links"].items():
        Path(root + path).symlink_to(target)
    Path(root, "tmp").chmod(0o1777)
    for path, text in container_spec["files"].items():
        Path(root + path).write_text(text)
    # The outer ones first, so that a volume at `/tmp` does not hide the project.
    for mount in sorted(container_spec["mounts"], key=lambda each: each["target"].count("/")):
        _bind(mount["source"], root + mount["target"], is_read_only=mount["is_read_only"])
    _mount("proc", root + "/proc", "proc")
    _mount("tmpfs", root + "/dev/shm", "tmpfs")  # noqa: S108 - not the machine's.
    if container_spec["is_read_only"]:
        _mount("none", root, flags=MS_REMOUNT | MS_BIND | MS_RDONLY)
    os.chdir(root)
    _syscall(SYS_PIVOT_ROOT, b".", b".")
    _call("umount2", b".", MNT_DETACH)


def _bind(source: str, target: str, *, is_read_only: bool) -> None:
    mount_point = Path(target)
    if Path(source).is_dir():
        mount_point.mkdir(parents=True, exist_ok=True)
    else:
        mount_point.parent.mkdir(parents=True, exist_ok=True)
        mount_point.touch()
    _mount(source, target, flags=MS_BIND | MS_REC)
    if is_read_only:
        attributes = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY, 0, 0, 0)
        size = ctypes.sizeof(attributes)
        encoded_target = target.encode()
        _syscall(SYS_MOUNT_SETATTR, AT_FDCWD, encoded_target, AT_RECURSIVE, attributes, size)


def _mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    _call("mount", source.encode(), target.encode(), kind.encode(), flags, data.encode())


def _die_with_parent() -> None:
    _call("prctl", PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _syscall(number: int, *arguments: object) -> None:
    _call("syscall", number, *arguments)


def _call(name: str, *arguments: object) -> None:
    c_arguments = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    if getattr(_libc, name)(*c_arguments) == -1:
        number = ctypes.get_errno()
        text_arguments = " ".join(each.decode() for each in arguments if isinstance(each, bytes))
        raise OSError(number, f"{name} {text_arguments}: {os.strerror(number)}")


def main() -> None:
    _die_with_parent()
    role, subject = sys.argv[1:]
    if role == "sandbox":
        sandbox(subject)
    else:
        sys.exit(container(int(subject)))


if __name__ == "__main__":
    main()
