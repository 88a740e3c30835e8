"""A worker of compaction without a process, for virtual time."""

from collections.abc import AsyncIterator

from kafscale.errors import DamagedObjectError
from kafscale.storage.compaction.log_cleaner import LogCleaner
from kafscale.storage.compaction.messages import Command, Failed, Reply


class LocalWorker:
    """Runs the same `LogCleaner` as the process does."""

    def __init__(self) -> None:
        self._cleaner = LogCleaner()

    async def request(
        self, command: Command, chunks: AsyncIterator[memoryview] | None = None, size_bytes: int = 0
    ) -> tuple[Reply, memoryview]:
        data = b"" if chunks is None else b"".join([bytes(chunk) async for chunk in chunks])
        assert len(data) == size_bytes
        reply, parts = self._cleaner.handle(command, data)
        if isinstance(reply, Failed):
            raise DamagedObjectError(reply.key, reply.reason)
        return reply, memoryview(b"".join(parts))

    def close(self) -> None:
        self._cleaner = LogCleaner()
