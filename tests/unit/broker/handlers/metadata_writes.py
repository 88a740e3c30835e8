"""Compares what the limits count with what is written to the metadata store."""

from kafscale.metadata.store.base import Put


class MetadataWrites:
    """Counts both from now on."""

    def __init__(self, broker):
        self.charged_bytes = 0
        self.written_bytes = 0
        limits, store = broker.services.commit_limits, broker.stores.metadata
        try_admit, commit = limits.try_admit, store.commit

        def counted_try_admit(user, group_id, size_bytes):
            admitted = try_admit(user, group_id, size_bytes)
            self.charged_bytes += size_bytes if admitted else 0
            return admitted

        async def counted_commit(compares, operations):
            puts = [each for each in operations if isinstance(each, Put)]
            self.written_bytes += sum(len(each.key) + len(each.value) for each in puts)
            return await commit(compares, operations)

        limits.try_admit, store.commit = counted_try_admit, counted_commit
