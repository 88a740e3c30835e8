"""Connections to a running cluster, as the settings name it: brokers, control plane, bucket.

Nothing stays open between calls: a caller opens a connection, uses it within a time limit, and
closes it. A cluster that was down is therefore found again on the next call.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kafscale.admin.cluster.control_client import ClusterControlClient
from kafscale.client.client import Client
from kafscale.client.security import Security
from kafscale.config import Config
from kafscale.errors import ConfigError
from kafscale.net.address import CONTROL_PORT_DEFAULT, parse
from kafscale.storage.formats import object_keys
from kafscale.storage.objects import factory
from kafscale.storage.objects.local.store import LocalObjectStore
from kafscale.storage.objects.store import ObjectStore


class ClusterConnections:
    """Opens connections to the parts of one cluster."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._security = Security.from_settings(config.client)
        self.bootstrap_addresses = tuple(map(parse, config.client.bootstrap_servers))
        self.control_addresses = tuple(
            parse(each, CONTROL_PORT_DEFAULT) for each in config.client.control_servers
        )
        self.control_tls = config.client.effective_control_tls

    @property
    def namespace(self) -> str:
        return self.config.s3.namespace

    @property
    def store_description(self) -> str:
        """The location of the records, such as `s3://bucket/namespace`."""
        return factory.describe_objects(self.config)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """A Kafka client."""
        async with Client(self.bootstrap_addresses, self._security) as client:
            yield client

    @asynccontextmanager
    async def control_plane(self) -> AsyncIterator[ClusterControlClient]:
        async with ClusterControlClient(self.control_addresses, self.control_tls) as control:
            yield control

    @asynccontextmanager
    async def objects(self) -> AsyncIterator[ObjectStore]:
        """The bucket, or the directory of an embedded broker, for reading."""
        s3 = self.config.s3
        if s3.use_memory:
            raise ConfigError("records are in the memory of the broker, and cannot be read here")
        if not s3.bucket:
            if not await asyncio.to_thread(self._directory.is_dir):
                raise ConfigError(
                    f"there are no records at {self._directory}; set KAFSCALE_S3_BUCKET, or"
                    " KAFSCALE_DATA_DIR to the directory of the broker on this machine"
                )
            # The broker has the directory open, so it is opened as shared here.
            local = LocalObjectStore(self._directory, shared=True)
            try:
                yield local
            finally:
                await local.close()
            return
        bucket = factory.bucket(self.config)
        async with factory.open_bucket(bucket, attempts_max=s3.attempts_max) as store:
            yield store

    @property
    def _directory(self) -> Path:
        return Path(self.config.broker.data_dir) / object_keys.OBJECTS_DIRECTORY
