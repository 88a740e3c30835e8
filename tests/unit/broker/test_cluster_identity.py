"""Which cluster a broker belongs to: nothing is written if metadata and bucket do not fit."""

import re

import pytest

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.broker.cluster_identity import establish_cluster_id
from kafscale.config import Config
from kafscale.config.sections.etcd import Etcd
from kafscale.config.sections.s3 import S3
from kafscale.errors import OperatingError
from kafscale.metadata.cluster.restore_marker import find_pending_restore, mark_restored
from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import Put
from kafscale.storage import topic_catalog
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.topic_catalog import CatalogTopic

EMBEDDED = Config()
SQLITE_WITH_BUCKET = Config(s3=S3(bucket="records"))
CLUSTER = Config(s3=S3(bucket="records"), etcd=Etcd(endpoints=("etcd:2379",)))
NAMESPACE = EMBEDDED.s3.namespace
SEGMENT = object_keys.segment_key(NAMESPACE, "orders", 0, 0)
WAL = object_keys.wal_key(NAMESPACE, 1, 0, 0)
CATALOG = object_keys.catalog_key(NAMESPACE)

remote = pytest.mark.parametrize("config", [CLUSTER, SQLITE_WITH_BUCKET], ids=["etcd", "sqlite"])


class Start:
    """The stores that a broker finds when it starts."""

    def __init__(self) -> None:
        self.objects = MemoryObjectStore(virtual_time.clock_ms)
        self.metadata = MemoryStore(virtual_time.clock_ms)

    async def add(self, *object_names: str) -> None:
        for key in object_names:
            await self.objects.put(key, [b"content"])

    async def add_catalog(self, cluster_id: str, revision: int = 1) -> None:
        topics = [CatalogTopic("orders", "0f" * 16, 3)]
        data = topic_catalog.encode(topics, cluster_id=cluster_id, revision=revision)
        await self.objects.put(CATALOG, [data])

    async def set_id(self, cluster_id: str) -> None:
        await self.metadata.commit([], [Put(keys.CLUSTER_ID, cluster_id.encode())])

    async def establish(self, config: Config = CLUSTER) -> str:
        return await establish_cluster_id(
            self.metadata, self.objects, config, candidate="new", clock=virtual_time.clock_ms
        )

    async def is_marked(self) -> bool:
        return await find_pending_restore(self.metadata) is not None


def simulate(body):
    virtual_time.run(lambda _: body(Start()), seed=0)


@pytest.mark.parametrize("config", [EMBEDDED, CLUSTER])
def test_new_cluster_gets_a_new_id(config):
    async def body(start):
        await start.add(f"{NAMESPACE}/_probe/1", f"{NAMESPACE}/_jobs/lake/1.json", "other/t/0/x")
        assert await start.establish(config) == "new"
        assert not await start.is_marked()
        await start.add(WAL)
        await start.add_catalog("new")
        assert await start.establish(config) == "new"

    simulate(body)


@remote
@pytest.mark.parametrize("key", [SEGMENT, WAL, CATALOG])
def test_empty_metadata_with_records_in_the_bucket_are_refused(config, key):
    async def body(start):
        await (start.add_catalog("former") if key == CATALOG else start.add(key))
        with pytest.raises(OperatingError, match="run `kafscale etcd restored`"):
            await start.establish(config)
        assert (await start.metadata.range("/")).entries == ()

    simulate(body)


def test_embedded_broker_restores_lost_metadata():
    async def body(start):
        await start.add(SEGMENT, WAL)
        await start.add_catalog("former", revision=99)
        assert await start.establish(EMBEDDED) == "former"
        assert await start.is_marked()

    simulate(body)


@remote
def test_marked_metadata_are_restored_with_the_id_of_the_catalog(config):
    async def body(start):
        await start.add_catalog("former", revision=99)
        await mark_restored(start.metadata, restored_at_ms=1)
        assert await start.establish(config) == "former"

    simulate(body)


@pytest.mark.parametrize("config", [EMBEDDED, SQLITE_WITH_BUCKET, CLUSTER])
def test_bucket_of_another_cluster_is_refused(config):
    async def body(start):
        await start.set_id("ours")
        await start.add_catalog("theirs")
        message = "belongs to cluster theirs.*cluster ours.*restored --cluster-id theirs"
        with pytest.raises(OperatingError, match=re.compile(message)):
            await start.establish(config)
        await mark_restored(start.metadata, restored_at_ms=1)
        with pytest.raises(OperatingError, match=re.compile(message)):
            await start.establish(config)
        await mark_restored(start.metadata, restored_at_ms=1, cluster_id="theirs")
        assert await start.establish(config) == "ours"

    simulate(body)


def test_metadata_older_than_their_catalog_are_marked():
    async def body(start):
        await start.set_id("ours")
        await start.add_catalog("ours", revision=1)
        await start.establish()
        assert not await start.is_marked()
        await start.objects.delete([CATALOG])
        await start.add_catalog("ours", revision=2)
        await start.establish()
        assert await start.is_marked()

    simulate(body)


def test_broker_that_starts_next_to_the_first_one_of_a_new_cluster_is_not_refused():
    """The first one sets the id and writes to the bucket while the second one reads."""

    async def body(start):
        get = start.metadata.get

        async def interfering(key):
            start.metadata.get = get
            found = await get(key)
            await start.set_id("first")
            await start.add(WAL)
            return found

        start.metadata.get = interfering
        assert await start.establish() == "first"

    simulate(body)
