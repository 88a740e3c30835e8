"""The local store: locks, leftovers, threads, and S3's listing order."""

import asyncio
import subprocess
import sys
import textwrap
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafscale.errors import OperatingError, StoreUnavailableError
from kafscale.storage.objects.local.store import LOCK, LocalObjectStore
from kafscale.storage.objects.memory import MemoryObjectStore

PARTS = st.text("ab0.-_", min_size=1, max_size=3).filter(lambda part: part not in {".", ".."})
KEYS = st.lists(PARTS, min_size=1, max_size=4).map(lambda parts: "ns/" + "/".join(parts))


def in_another_process(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603


def without_conflicts(keys: set[str]) -> list[str]:
    """Only keys that are not directories of others, which files cannot be."""
    return [key for key in keys if not any(other.startswith(f"{key}/") for other in keys)]


@settings(max_examples=50)
@given(st.sets(KEYS, max_size=30).map(without_conflicts), st.data())
def test_listing_equals_that_of_the_memory_store(tmp_path_factory, keys, data):
    deleted = data.draw(st.sets(st.sampled_from(keys))) if keys else set()

    async def listing(store):
        for key in keys:
            await store.put(key, [b"x"])
        await store.delete([*deleted])
        prefixes = {"ns/", *(key.rpartition("/")[0] + "/" for key in keys)}
        result = {
            prefix: [info.key async for chunk in store.list(prefix) for info in chunk]
            for prefix in prefixes
        }
        await store.close()
        return result

    local = LocalObjectStore(tmp_path_factory.mktemp("store"), fsync=False, threads=1)
    assert asyncio.run(listing(local)) == asyncio.run(listing(MemoryObjectStore()))


def test_directory_has_one_owner_at_a_time(tmp_path):
    first = LocalObjectStore(tmp_path)
    with pytest.raises(OperatingError, match="another process uses it"):
        LocalObjectStore(tmp_path)
    program = """
        import sys
        from pathlib import Path
        from kafscale.errors import OperatingError
        from kafscale.storage.objects.local.store import LocalObjectStore
        try:
            LocalObjectStore(Path(sys.argv[1]))
        except OperatingError as error:
            print(error)
    """
    assert "another process" in in_another_process(program, str(tmp_path)).stdout
    asyncio.run(first.close())
    asyncio.run(LocalObjectStore(tmp_path).close())


def test_killed_process_leaves_only_its_objects(tmp_path):
    program = """
        import asyncio, os, sys
        from pathlib import Path
        from kafscale.storage.objects.local.store import LocalObjectStore

        def die_in_the_middle(descriptor, buffers):
            if len(buffers) == 1:
                return os.writev(descriptor, buffers)
            os.write(descriptor, buffers[0])
            os._exit(9)

        async def main():
            store = LocalObjectStore(Path(sys.argv[1]), write=die_in_the_middle)
            await store.put("ns/whole", [b"whole"])
            await store.put("ns/half", [b"ha", b"lf"])

        asyncio.run(main())
    """
    assert in_another_process(program, str(tmp_path)).returncode == 9
    assert [path.read_bytes() for path in (tmp_path / ".tmp").iterdir()] == [b"ha"]

    async def scenario():
        store = LocalObjectStore(tmp_path)
        assert [*(tmp_path / ".tmp").iterdir()] == []
        result = [info.key async for chunk in store.list("ns/") for info in chunk]
        assert result == ["ns/whole"]
        assert await store.get("ns/whole") == b"whole"
        await store.close()

    asyncio.run(scenario())


def test_file_size_limit_is_a_full_disk(tmp_path):
    program = """
        import asyncio, resource, signal, sys
        from pathlib import Path
        from kafscale.errors import StoreUnavailableError
        from kafscale.storage.objects.local.store import LocalObjectStore

        async def main():
            store = LocalObjectStore(Path(sys.argv[1]))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
            await store.put("ns/small", [bytes(5000)])
            try:
                await store.put("ns/large", [bytes(4000), bytes(4000)])
            except StoreUnavailableError as error:
                print(error)
            await store.close()

        asyncio.run(main())
    """
    done = in_another_process(program, str(tmp_path))
    assert done.stdout.startswith("put ns/large: no space left on device"), done.stderr
    assert {path.name for path in (tmp_path / "ns").iterdir()} == {"small"}
    assert [*(tmp_path / ".tmp").iterdir()] == []


def test_event_loop_is_not_blocked(tmp_path):
    threads: set[str] = set()
    release = threading.Event()

    def write(_descriptor, buffers):
        threads.add(threading.current_thread().name)
        assert release.wait(10)
        return sum(map(len, buffers))

    async def scenario():
        store = LocalObjectStore(tmp_path, fsync=False, threads=2, write=write)
        puts = [asyncio.ensure_future(store.put(f"ns/{number}", [b"x"])) for number in range(5)]
        await asyncio.sleep(0)
        assert not any(put.done() for put in puts)
        release.set()
        await asyncio.gather(*puts)
        await store.close()

    asyncio.run(scenario())
    assert threads
    assert len(threads) <= 2
    assert all(name.startswith("objects") for name in threads)


def test_unusable_directory_is_reported_at_the_start(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnavailableError, match="Not a directory"):
        LocalObjectStore(tmp_path / "file" / "below")
    (tmp_path / "taken" / LOCK).mkdir(parents=True)
    with pytest.raises(OperatingError, match="Is a directory"):
        LocalObjectStore(tmp_path / "taken")
