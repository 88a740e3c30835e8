"""Direct I/O: large files are read as they were written, for any length."""

import errno
import itertools
import os
from random import Random

import pytest

from kafscale.errors import StoreUnavailableError
from kafscale.storage.objects.local import direct_io
from kafscale.storage.objects.local.files import FileTree

CHUNK = 1024 * 1024


@pytest.mark.parametrize(
    "size_bytes",
    [direct_io.SIZE_BYTES_MIN, 2 * CHUNK, 2 * CHUNK + 1, 3 * CHUNK - 1, 2 * CHUNK + 4096],
)
@pytest.mark.parametrize("fsync", [True, False])
def test_large_object_round_trip(tmp_path, size_bytes, fsync):
    data = Random(size_bytes).randbytes(size_bytes)
    cuts = [0, 1, 70, 4096, CHUNK, CHUNK + 7, size_bytes]
    parts = [memoryview(data)[a:b] for a, b in itertools.pairwise(cuts)]
    files = FileTree(str(tmp_path), fsync=fsync)
    files.put("ns/large", parts, create=True)
    assert files.get("ns/large", 0, None) == data


@pytest.mark.parametrize("size_bytes", [5, 4096, direct_io.SIZE_BYTES_MIN, 5 * CHUNK + 7])
def test_range_ends_at_the_end_of_the_object(tmp_path, size_bytes):
    data = Random(size_bytes).randbytes(size_bytes)
    files = FileTree(str(tmp_path), fsync=False)
    files.put("ns/object", [data], create=True)
    for start in (0, 4096, 4 * CHUNK, 8 * CHUNK):
        value = files.get("ns/object", start, start + 4 * CHUNK)
        assert value == data[start : start + 4 * CHUNK]
        assert value.readonly


def test_partial_writes_are_completed(tmp_path):
    requests = []

    def reluctant(descriptor, parts):
        requests.append(len(parts[0]))
        return os.writev(descriptor, [parts[0][: max(len(parts[0]) // 2 // 4096, 1) * 4096]])

    data = Random(1).randbytes(direct_io.SIZE_BYTES_MIN + 5)
    files = FileTree(str(tmp_path), fsync=False, write=reluctant)
    files.put("ns/large", [data], create=True)
    assert len(requests) > 2
    assert files.get("ns/large", 0, None) == data


def test_file_system_without_direct_io_uses_buffered_writes(tmp_path):
    """Some file systems know no direct writes, and say so only when they are asked."""
    calls = []

    def refuses_once(descriptor, parts):
        calls.append(len(parts))
        if len(calls) == 1:
            raise OSError(errno.EINVAL, "not here")
        return os.writev(descriptor, parts)

    data = Random(2).randbytes(direct_io.SIZE_BYTES_MIN)
    files = FileTree(str(tmp_path), fsync=False, write=refuses_once)
    for key in ("ns/first", "ns/second"):
        files.put(key, [data], create=True)
        assert files.get(key, 0, None) == data


def test_full_disk_is_reported_and_leaves_no_file(tmp_path):
    def full(_descriptor, _parts):
        raise OSError(errno.ENOSPC, "full")

    files = FileTree(str(tmp_path), fsync=False, write=full)
    with pytest.raises(StoreUnavailableError, match="no space left"):
        files.put("ns/large", [bytes(direct_io.SIZE_BYTES_MIN)], create=True)
    assert list((tmp_path / ".tmp").iterdir()) == []
