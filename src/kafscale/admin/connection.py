"""The ways to a running cluster, as the settings name them: brokers, control plane, bucket, etcd.

The law: nothing is kept open that nobody uses. Whoever asks opens a way, uses it within a time
limit, and closes it: a cluster that comes back is found again without anybody's help.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kafscale.admin.cluster.control_client import Cluster
from kafscale.client.client import Client
from kafscale.client.security import Security
from kafscale.config import Config
from kafscale.errors import ConfigError
from kafscale.net.host_port import CONTROL_PORT_DEFAULT, parse
from kafscale.storage.formats import object_keys
from kafscale.storage.objects import factory
from kafscale.storage.objects.local.store import LocalObjectStore
from kafscale.storage.objects.store import ObjectStore


class Reach:
    """What is needed to ask a cluster anything."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._security = Security.of(config.client)
        self.bootstrap = tuple(map(parse, config.client.bootstrap_servers))
        self.control = tuple(
            parse(each, CONTROL_PORT_DEFAULT) for each in config.client.control_servers
        )
        self.control_tls = config.client.tls if config.client.control_tls else None

    @property
    def namespace(self) -> str:
        return self.config.s3.namespace

    @property
    def place(self) -> str:
        """Where records are, in words for people."""
        return factory.describe_objects(self.config)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """Kafka's protocol."""
        async with Client(self.bootstrap, self._security) as client:
            yield client

    @asynccontextmanager
    async def cluster(self) -> AsyncIterator[Cluster]:
        """The control plane."""
        async with Cluster(self.control, self.control_tls) as found:
            yield found

    @asynccontextmanager
    async def objects(self) -> AsyncIterator[ObjectStore]:
        """The bucket, or the directory of an embedded Kafscale, to be looked at."""
        s3 = self.config.s3
        if s3.use_memory:
            raise ConfigError("the records are in the memory of the broker, where only it can look")
        if not s3.bucket:
            if not await asyncio.to_thread(self._directory.is_dir):
                raise ConfigError(
                    f"there are no records at {self._directory}; set KAFSCALE_S3_BUCKET, or"
                    " KAFSCALE_DATA_DIR to the directory of the broker on this machine"
                )
            # The broker has the directory; whoever looks only shares it.
            local = LocalObjectStore(self._directory, shared=True)
            try:
                yield local
            finally:
                await local.close()
            return
        chosen = factory.bucket(self.config)
        async with factory.open_bucket(chosen, retries_max=s3.retries_max) as store:
            yield store

    @property
    def _directory(self) -> Path:
        return Path(self.config.broker.data_dir) / object_keys.OBJECTS_DIRECTORY
