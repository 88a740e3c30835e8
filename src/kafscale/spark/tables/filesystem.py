"""The filesystem of tables: a directory, a bucket, or another filesystem of pyiceberg.

All formats share it, so that one set of properties with pyiceberg's names (`s3.endpoint`,
`s3.access-key-id`, …) configures every kind of table. It is created on the driver and sent to the
tasks. Invariant: properties may hold secrets and are not part of the `repr`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow.fs import FileSelector, FileSystem, FileType
from pyiceberg.io.pyarrow import PyArrowFileIO

from kafscale.errors import InvalidRequestError
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.local.store import LocalObjectStore
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.store import S3ObjectStore
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

_FILE: Final = "file://"
_BUCKET_SETTINGS: Final = {
    "s3.endpoint": "endpoint",
    "s3.region": "region",
    "s3.access-key-id": "access_key",
    "s3.secret-access-key": "secret_key",
    "s3.session-token": "session_token",
    "s3.role-arn": "role_arn",
}


@dataclass(frozen=True)
class TableFilesystem:
    """Files below a root; paths are absolute, as `join` returns them."""

    root: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, root: str, properties: Mapping[str, str] | None = None) -> "TableFilesystem":
        """Return the filesystem at a root; the path of a directory is made absolute.

        A directory given as a URL keeps its URL, because tables store it.

        >>> TableFilesystem.of("s3://lake/tables/").join("orders", "a.parquet")
        's3://lake/tables/orders/a.parquet'
        """
        text = root.rstrip("/")
        if not text:
            raise InvalidRequestError(f"{root!r} is not a path of a table")
        is_relative = "://" not in text
        return cls(str(Path(text).absolute()) if is_relative else text, dict(properties or {}))

    @property
    def is_local(self) -> bool:
        return "://" not in self.root or self.root.startswith(_FILE)

    @property
    def url(self) -> str:
        """The root as a URL."""
        return self.root if "://" in self.root else f"{_FILE}{self.root}"

    def join(self, *parts: str) -> str:
        return "/".join((self.root, *(part for part in parts if part)))

    def write(self, path: str, data: pa.Buffer) -> None:
        """Store a file."""
        system, inside = self._resolve(path)
        if self.is_local:
            system.create_dir(str(Path(inside).parent), recursive=True)
        with system.open_output_stream(inside) as stream:
            stream.write(data)

    def open(self, path: str) -> pa.NativeFile:
        system, inside = self._resolve(path)
        return system.open_input_file(inside)

    def exists(self, path: str) -> bool:
        system, inside = self._resolve(path)
        return bool(system.get_file_info(inside).type == FileType.File)

    def move(self, path: str, to: str) -> None:
        """Rename a file; in a bucket, copy it and delete the old one."""
        system, inside = self._resolve(path)
        _, target = self._resolve(to)
        if self.is_local:
            system.create_dir(str(Path(target).parent), recursive=True)
        system.move(inside, target)

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            system, inside = self._resolve(path)
            try:
                system.delete_file(inside)
            except FileNotFoundError:
                continue

    def list(self, path: str) -> Iterator[ObjectInfo]:
        """Yield the files below a path; none if it does not exist."""
        system, inside = self._resolve(path)
        scheme, separator, _ = self.root.rpartition("://")
        selector = FileSelector(inside, recursive=True, allow_not_found=True)
        for info in system.get_file_info(selector):
            if info.type == FileType.File:
                modified_ms = (info.mtime_ns or 0) // 1_000_000
                yield ObjectInfo(f"{scheme}{separator}{info.path}", info.size, modified_ms)

    def objects(self) -> tuple[BlockingObjectStore, str]:
        """Return a store with a create-only PUT, and the prefix of the root in it."""
        if self.is_local:
            directory = Path(self.root.removeprefix(_FILE))
            directory.mkdir(parents=True, exist_ok=True)
            return BlockingObjectStore(lambda: LocalObjectStore(directory, shared=True)), ""
        parts = urlsplit(self.root)
        if parts.scheme not in {"s3", "s3a", "s3n"}:
            raise InvalidRequestError(f"{self.root} is neither a directory nor an s3:// URL")
        bucket = self._bucket(parts.netloc)

        def connect() -> ObjectStore:
            return S3ObjectStore(bucket)

        prefix = parts.path.strip("/")
        return BlockingObjectStore(connect), f"{prefix}/" if prefix else ""

    def _bucket(self, name: str) -> S3Bucket:
        settings: dict[str, Any] = {
            attribute: self.properties[key]
            for key, attribute in _BUCKET_SETTINGS.items()
            if key in self.properties
        }
        virtual = self.properties.get("s3.force-virtual-addressing", "").lower() == "true"
        return S3Bucket(name=name, path_style=False if virtual else None, **settings)

    def _resolve(self, path: str) -> tuple[FileSystem, str]:
        files = _file_io(tuple(sorted(self.properties.items())))
        scheme, host, inside = files.parse_location(path)
        return files.fs_by_scheme(scheme, host), inside


@lru_cache(maxsize=16)
def _file_io(properties: tuple[tuple[str, str], ...]) -> PyArrowFileIO:
    """Cache connections by their properties."""
    return PyArrowFileIO(dict(properties))
