"""Registrations of brokers that do not run: partitions can be moved to them."""

from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_broker
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.metadata.store.base import Delete, Put


async def register(broker, *broker_ids, is_draining=False):
    """Register brokers in the metadata store, or change their registrations."""
    cluster = broker.services.cluster
    for broker_id in broker_ids:
        info = BrokerInfo(id=broker_id, epoch=1, host="other", port=9092, is_draining=is_draining)
        key = keys.broker(str(broker_id))
        done = await broker.stores.metadata.commit([], [Put(key, encode_broker(info, 0))])
        await cluster.wait_for(
            lambda broker_id=broker_id, done=done: (
                broker_id in cluster.brokers
                and cluster.brokers[broker_id].mod_revision >= done.revision
            )
        )


async def remove(broker, broker_id):
    cluster = broker.services.cluster
    await broker.stores.metadata.commit([], [Delete(keys.broker(str(broker_id)))])
    await cluster.wait_for(lambda: broker_id not in cluster.brokers)


async def wait_for_owner(broker, topic, index, owner_id):
    cluster = broker.services.cluster
    await cluster.wait_for(lambda: cluster.leader(topic, index)[0] == owner_id)
